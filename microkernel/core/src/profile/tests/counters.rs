//! Samples by a CPU's own counter, on a monitor that counts between any two accesses, and with interrupts that take their time, get
//! lost, come with others in one NMI, or come once more than they should. An NMI may come between any two accesses outside of an NMI.

use super::fake::{Fake, FakeThreads};
use super::setup::{self, MAP, USER, leak};
use crate::base::cpu::{Cpu, CpuId};
use crate::pmu::fake::{FakeMonitor, Mode, claims_of_all, install};
use crate::pmu::{Claims, Finding};
use crate::profile::driver::Driver;
use crate::profile::source::{Counters, SampleSource, Tick, Trigger};
use crate::profile::{Machine, Purpose};
use ipc::abi::Error;
use ipc::abi::monitor::{MonitorInfo, Verdict};
use ipc::abi::profile::{DOMAINS_ALL, EventSpec, Phase, SampleCounters, Source, SourceRequest};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64 as Mask, Ordering::Relaxed};

/// Cycles in a second, and those of the longest period.
const HZ: u64 = 1_000_000_000;
const LONGEST: u64 = HZ / 1000 * 3 / 2;

/// What CPUs ask their neighbours by: which do.
struct Neighbours(Mask);

impl SampleSource for Neighbours {
    fn id(&self) -> Source {
        Source::TimerNmi
    }
    fn frequency(&self) -> u64 {
        1000
    }
    fn trigger(&self) -> Trigger {
        Trigger::Neighbour
    }
    fn arm(&self, cpu: CpuId, _: u64) {
        self.0.fetch_or(cpu.bit(), Relaxed);
    }
    fn disarm(&self, cpu: CpuId) {
        self.0.fetch_and(!cpu.bit(), Relaxed);
    }
}

struct Bench {
    driver: Driver,
    neighbours: &'static Neighbours,
    machine: &'static Fake,
    threads: FakeThreads<'static>,
    token: Cpu,
}

/// What a CPU's proof found of these claims: that the counter works, or does not.
fn finding(claims: Claims, works: bool) -> Finding {
    let verdict = if works {
        Verdict::Works
    } else {
        Verdict::StandsStill
    };
    Finding {
        info: MonitorInfo {
            interface: claims.interface as u64,
            verdict: verdict as u64,
            hz: if works { HZ } else { 0 },
            ..MonitorInfo::default()
        },
        counter: claims.cycles().filter(|_| works),
    }
}

/// A monitor as its proof leaves it.
fn proved(claims: Claims) -> Rc<FakeMonitor> {
    let monitor = FakeMonitor::new(claims, Mode::Good);
    let counter = claims.cycles().unwrap();
    counter.claim(&monitor).unwrap();
    Rc::new(monitor)
}

/// CPUs with these claims, of which those in the mask are true.
fn bench(claims: &[Claims], works: u64, neighbours: bool) -> Bench {
    bench_owed(claims, works, neighbours, 0)
}

/// The same where these CPUs may still get an NMI of their proof.
fn bench_owed(claims: &[Claims], works: u64, neighbours: bool, owed: u64) -> Bench {
    let source = leak(Neighbours(Mask::new(0)));
    let counters = |id| leak(Counters { id }) as &dyn SampleSource;
    let sources = leak([
        counters(Source::PmuIntel),
        counters(Source::PmuAmdV2),
        counters(Source::PmuAmd),
        source,
        leak(Tick { frequency: 100 }),
    ]);
    let (machine, threads) = setup::machine();
    let (states, _) = setup::cpus(claims.len());
    let driver = Driver::new(states, sources, MAP).unwrap();
    if neighbours {
        driver.offer(Source::TimerNmi, Trigger::Neighbour);
    }
    for (index, &claims) in claims.iter().enumerate() {
        let cpu = CpuId(index as u8);
        if owed & cpu.bit() != 0 {
            driver.owed(cpu);
        }
        driver.publish(cpu, finding(claims, works & cpu.bit() != 0));
    }
    driver.offer_counters();
    Bench {
        driver,
        neighbours: source,
        machine,
        threads,
        token: Cpu::new(CpuId(0)),
    }
}

impl Bench {
    fn start(&self, request: SourceRequest) -> Result<Source, Error> {
        let cycles = EventSpec {
            domains: DOMAINS_ALL,
            ..EventSpec::default()
        };
        self.driver.start(&self.token, 1, request, &[cycles])
    }
    fn stop(&self) {
        let _ = self.driver.stop(&self.token, self.machine.tsc());
    }
    fn tick(&self, cpu: usize) {
        let cpu = CpuId(cpu as u8);
        let _ = self
            .driver
            .on_tick(cpu, &USER, 0, self.machine, &self.threads);
    }
    fn nmi(&self, cpu: usize) -> bool {
        let cpu = self.driver.state(CpuId(cpu as u8)).unwrap();
        self.driver.on_nmi(cpu, &USER, self.machine, &self.threads)
    }
    fn counters(&self) -> SampleCounters {
        self.driver.status(&self.token).counters
    }
    fn is_in(&self, phase: Phase) -> bool {
        self.driver.status(&self.token).phase == phase as u64
    }
}

#[test]
fn a_counter_is_offered_if_each_cpu_can_be_sampled() {
    let [intel, v5, amd, v2, old] = claims_of_all();
    let source = |claims: &[Claims], works, neighbours| {
        let bench = bench(claims, works, neighbours);
        let (started, status) = (
            bench.start(SourceRequest::Pmu),
            bench.driver.status(&bench.token),
        );
        let is_best = started.is_ok_and(|source| source as u64 == status.best);
        assert_eq!(is_best, started.is_ok(), "{status:?}");
        (started, status.counting)
    };
    for (claims, id) in [
        (intel, Source::PmuIntel),
        (v5, Source::PmuIntel),
        (old, Source::PmuIntel),
        (amd, Source::PmuAmd),
        (v2, Source::PmuAmdV2),
    ] {
        assert_eq!(source(&[claims; 2], 0b11, false), (Ok(id), 0b11));
        assert_eq!(source(&[claims; 3], 0b101, true), (Ok(id), 0b101));
    }
    let none = Err(Error::Unsupported);
    assert_eq!(source(&[intel; 2], 0b00, true), (none, 0));
    assert_eq!(source(&[intel; 2], 0b01, false), (none, 0));
    assert_eq!(source(&[Claims::NONE; 2], 0b11, true), (none, 0));
    // Of two kinds, the other is sampled by its neighbour.
    assert_eq!(source(&[amd, v2], 0b11, true), (Ok(Source::PmuAmd), 0b01));
    assert_eq!(
        bench(&[v2], 1, true).start(SourceRequest::Best),
        Ok(Source::PmuAmdV2)
    );
}

#[test]
fn what_is_known_of_a_monitor_can_be_asked() {
    let [intel, ..] = claims_of_all();
    let bench = bench(&[intel; 2], 0b01, true);
    assert_eq!(bench.driver.monitor(0), Some(finding(intel, true).info));
    assert_eq!(bench.driver.monitor(1), Some(finding(intel, false).info));
    assert_eq!(bench.driver.monitor(2), None);
    // The first answer stays.
    bench.driver.publish(CpuId(0), finding(intel, false));
    assert_eq!(bench.driver.monitor(0), Some(finding(intel, true).info));
}

/// Cpu 0 has a counter, cpus 1 and 2 have none: who asks whom, and whose NMI is whose.
#[test]
fn a_cpu_without_a_counter_is_asked_for_by_the_one_before_it() {
    let [intel, ..] = claims_of_all();
    let bench = bench(&[intel; 3], 0b001, true);
    let monitor = proved(intel);
    install(monitor.clone(), || ());
    assert_eq!(bench.start(SourceRequest::Best), Ok(Source::PmuIntel));
    (0..3).for_each(|cpu| bench.tick(cpu));
    assert!(bench.is_in(Phase::Open) && monitor.is_running());
    assert_eq!(bench.neighbours.0.load(Relaxed), 0b011);
    let due = |cpu| {
        let now = crate::base::addr::Tsc(bench.machine.tsc().0 + 1000);
        bench
            .driver
            .on_due(CpuId(cpu), crate::apic::timer::DueSample::default(), now)
    };
    assert_eq!(
        [due(0), due(1), due(2)],
        [Some(CpuId(1)), Some(CpuId(2)), None]
    );
    assert!(bench.nmi(1) && bench.nmi(2) && !bench.nmi(1) && !bench.nmi(2));
    assert_eq!(bench.counters().taken, 2);
    monitor.advance(LONGEST);
    assert!(bench.nmi(0));
    assert_eq!(bench.counters().taken, 3);
    bench.stop();
    (0..3).for_each(|cpu| bench.tick(cpu));
    assert_eq!(bench.neighbours.0.load(Relaxed), 0);
    assert!(!monitor.is_running() && bench.is_in(Phase::Disarming));
    bench.tick(0);
    assert!(bench.is_in(Phase::Idle), "no NMI of it can come any more");
    assert!(!bench.nmi(0));
}

/// An NMI that was announced in a run before, and an overflow, in one.
#[test]
fn an_overflow_and_an_announced_nmi_in_one_are_both_credited() {
    for claims in claims_of_all() {
        let bench = bench(&[claims], 1, true);
        let monitor = proved(claims);
        install(monitor.clone(), || ());
        bench.start(SourceRequest::Pmu).unwrap();
        bench.tick(0);
        let expected = bench.driver.expected(CpuId(0)).unwrap();
        assert!(expected.announce(Purpose::Sample));
        monitor.advance(LONGEST);
        assert!(bench.nmi(0) && !expected.is_pending());
        let SampleCounters { taken, late, .. } = bench.counters();
        assert_eq!((taken, late), (1, 1));
        assert!(monitor.is_running());
        // They were two after all; and one that comes once more than it should. Not a third.
        assert!(bench.nmi(0) && bench.nmi(0) && !bench.nmi(0));
        assert_eq!(bench.counters().late, 3);
    }
}

/// The interrupt of a proof that did not wait for it, or one that came twice.
#[test]
fn an_nmi_of_the_proof_may_come_until_the_second_tick_and_no_profile_begins_before() {
    let [intel, ..] = claims_of_all();
    for works in [0b00, 0b11] {
        let bench = bench_owed(&[intel; 2], works, true, 0b10);
        let monitor = proved(intel);
        install(monitor.clone(), || ());
        assert!(bench.is_in(Phase::Disarming) && !bench.nmi(0));
        assert_eq!(bench.driver.status(&bench.token).stragglers, 0b10);
        assert_eq!(bench.start(SourceRequest::Best), Err(Error::Busy));
        (0..2).for_each(|cpu| bench.tick(cpu));
        assert!(bench.is_in(Phase::Disarming));
        assert!(bench.nmi(1) && !bench.nmi(1), "it comes once");
        bench.tick(1);
        assert!(bench.is_in(Phase::Idle) && !bench.nmi(1));
        assert!(bench.start(SourceRequest::Best).is_ok());
    }
    let bench = bench_owed(&[intel], 1, true, 1);
    (0..2).for_each(|_| bench.tick(0));
    assert!(bench.is_in(Phase::Idle) && !bench.nmi(0), "it came not");
}

#[test]
fn an_interrupt_that_is_lost_is_missed_and_sampling_goes_on() {
    for claims in claims_of_all() {
        let bench = bench(&[claims], 1, true);
        let monitor = proved(claims);
        install(monitor.clone(), || ());
        bench.start(SourceRequest::Pmu).unwrap();
        bench.tick(0);
        monitor.drops.set(true);
        monitor.advance(LONGEST);
        bench.tick(0);
        assert!(monitor.has_overflowed(), "it may still come");
        monitor.advance(3 * HZ / 1000);
        bench.tick(0);
        assert!(monitor.is_running() && monitor.unmasked.get());
        // That one, and those of three milliseconds and of what was left of the first period.
        let missed = bench.counters().missed;
        assert!((4..=5).contains(&missed), "{missed}");
        monitor.advance(LONGEST);
        assert!(bench.nmi(0));
        assert_eq!(bench.counters().taken, 1);
    }
}

/// It may come after all, and once more; and as many after a stop, if the counter overflowed just then.
#[test]
fn an_overflow_that_no_nmi_acknowledged_is_good_for_two() {
    for claims in claims_of_all() {
        for stops in [false, true] {
            let bench = bench(&[claims], 1, true);
            let monitor = proved(claims);
            install(monitor.clone(), || ());
            bench.start(SourceRequest::Pmu).unwrap();
            bench.tick(0);
            if stops {
                bench.stop();
            } else {
                monitor.drops.set(true);
                monitor.advance(3 * LONGEST);
            }
            bench.tick(0);
            assert!(bench.nmi(0) && bench.nmi(0) && !bench.nmi(0));
            let SampleCounters { taken, late, .. } = bench.counters();
            assert_eq!((taken, late), (0, 2));
        }
    }
}

thread_local! {
    static WORLD: Cell<Option<&'static World>> = const { Cell::new(None) };
}

/// One CPU, and what an adversary does to it.
struct World {
    bench: Bench,
    monitor: Rc<FakeMonitor>,
    /// What happens between accesses, one number each.
    choices: RefCell<Vec<u8>>,
    ticks: Cell<u64>,
    in_tick: Cell<bool>,
    in_nmi: Cell<bool>,
    /// An NMI is pending; a foreign one is part of it; an interrupt of the counter is.
    pending: Cell<bool>,
    foreign: Cell<bool>,
    own: Cell<bool>,
    /// Interrupts of the counter on their way, by the ticks at their overflow.
    wire: RefCell<Vec<u64>>,
    /// By the ticks at the time: overflows that were acknowledged, each good for one NMI without a cause.
    credits: RefCell<Vec<u64>>,
    foreigners: Cell<u64>,
    ended: Cell<bool>,
}

impl World {
    fn new(claims: Claims, choices: Vec<u8>) -> &'static Self {
        let world = leak(Self {
            bench: bench(&[claims], 1, true),
            monitor: proved(claims),
            choices: RefCell::new(choices),
            ticks: Cell::new(0),
            in_tick: Cell::new(false),
            in_nmi: Cell::new(false),
            pending: Cell::new(false),
            foreign: Cell::new(false),
            own: Cell::new(false),
            wire: RefCell::default(),
            credits: RefCell::default(),
            foreigners: Cell::new(0),
            ended: Cell::new(false),
        });
        WORLD.set(Some(world));
        install(world.monitor.clone(), || {
            WORLD.get().expect("it is set first").between();
        });
        world
    }

    fn between(&self) {
        let choice = self.choices.borrow_mut().pop().unwrap_or(0);
        match choice % 16 {
            8 | 9 => self.advance(u64::from(choice)),
            10 => self.advance(LONGEST / 2),
            11 => self.advance(2 * LONGEST),
            12 | 13 => self.deliver(),
            14 => self.monitor.drops.set(true),
            _ => {}
        }
        self.take_nmi();
    }

    fn advance(&self, cycles: u64) {
        self.monitor.advance(cycles);
        for _ in 0..self.monitor.on_their_way.take() {
            self.wire.borrow_mut().push(self.ticks.get());
        }
    }

    /// The first interrupt on its way arrives.
    fn deliver(&self) {
        let mut wire = self.wire.borrow_mut();
        if !wire.is_empty() {
            wire.remove(0);
            self.pending.set(true);
            self.own.set(true);
        }
    }

    /// The CPU takes an NMI if one is pending, and judges whether it did right.
    fn take_nmi(&self) {
        if self.in_nmi.get() || self.ended.get() || !self.pending.take() {
            return;
        }
        let (foreign, own) = (self.foreign.take(), self.own.take());
        let expected = self.bench.driver.expected(CpuId(0)).unwrap();
        let announced = expected.is_pending();
        let before = self.monitor.acknowledged.get();
        self.in_nmi.set(true);
        let claimed = self.bench.nmi(0);
        self.in_nmi.set(false);
        if !claimed {
            assert!(
                foreign || self.foreigners.get() > 0,
                "one of ours was called foreign"
            );
            self.ended.set(true);
            return;
        }
        let acknowledged = self.monitor.acknowledged.get() > before;
        let now = self.ticks.get();
        let mut credits = self.credits.borrow_mut();
        credits.retain(|at| now - at.min(&now) < 2);
        if !acknowledged && !announced {
            assert!(
                !credits.is_empty(),
                "one that nobody caused was taken for ours"
            );
            credits.remove(0);
        }
        if acknowledged {
            // It may come once more, and so may what an announced one may be part of.
            let at = now + u64::from(self.in_tick.get());
            credits.push(at);
            if announced {
                credits.push(at);
            }
        }
        // Once more than it should.
        if own && acknowledged && self.choices.borrow().last().is_some_and(|&last| last > 200) {
            let mut wire = self.wire.borrow_mut();
            if wire.is_empty() && !self.pending.get() {
                wire.push(now);
            }
        }
    }

    fn tick(&self) {
        // An interrupt comes before the second tick after its overflow, or never.
        while self
            .wire
            .borrow()
            .first()
            .is_some_and(|&at| at + 1 < self.ticks.get() + 1)
        {
            self.deliver();
            self.take_nmi();
        }
        let before = self.monitor.acknowledged.get();
        // The tick may acknowledge one overflow, or stop the counter; that is good for both its NMIs at once.
        let at = self.ticks.get() + 1;
        self.credits.borrow_mut().extend([at; 2]);
        self.in_tick.set(true);
        self.bench.tick(0);
        self.in_tick.set(false);
        self.ticks.set(at);
        let acknowledged = self.monitor.acknowledged.get() > before;
        if !acknowledged && !self.bench.is_in(Phase::Disarming) {
            let mut credits = self.credits.borrow_mut();
            for _ in 0..2 {
                let unused = credits.iter().position(|&credit| credit == at);
                credits.remove(unused.expect("one that nobody caused was taken for ours"));
            }
        }
        self.take_nmi();
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Start(SourceRequest),
    Stop,
    Tick,
    Advance(u64),
    Deliver,
    Drop,
    Announced,
    Foreign,
}

fn step(foreign: u32) -> impl Strategy<Value = Step> {
    let request = prop_oneof![
        4 => Just(SourceRequest::Pmu),
        1 => Just(SourceRequest::Timer),
        1 => Just(SourceRequest::Tick),
    ];
    prop_oneof![
        4 => request.prop_map(Step::Start),
        1 => Just(Step::Stop),
        8 => Just(Step::Tick),
        8 => (1..2 * LONGEST).prop_map(Step::Advance),
        6 => Just(Step::Deliver),
        1 => Just(Step::Drop),
        1 => Just(Step::Announced),
        foreign => Just(Step::Foreign),
    ]
}

fn play(which: usize, choices: Vec<u8>, steps: &[Step]) -> &'static World {
    let world = World::new(claims_of_all()[which], choices);
    for step in steps {
        match *step {
            Step::Start(request) => {
                let _ = world.bench.start(request);
            }
            Step::Stop => world.bench.stop(),
            Step::Tick => world.tick(),
            Step::Advance(cycles) => world.advance(cycles),
            Step::Deliver => world.deliver(),
            Step::Drop => world.monitor.drops.set(true),
            Step::Announced => {
                let expected = world.bench.driver.expected(CpuId(0)).unwrap();
                if expected.announce(Purpose::Sample) {
                    world.pending.set(true);
                }
            }
            Step::Foreign => {
                world.foreigners.set(world.foreigners.get() + 1);
                world.foreign.set(true);
                world.pending.set(true);
            }
        }
        world.take_nmi();
        if world.ended.get() {
            break;
        }
    }
    world
}

/// Each interrupt comes when the next overflow is there, and is taken for that one's: what is owed is owed for the one behind it then.
#[test]
fn interrupts_that_lag_behind_are_ours_to_the_last() {
    for which in 0..claims_of_all().len() {
        let steps = [
            Step::Start(SourceRequest::Pmu),
            Step::Tick,
            Step::Advance(LONGEST),
            Step::Announced,
            Step::Advance(2 * LONGEST),
            Step::Tick,
            Step::Advance(LONGEST),
            Step::Deliver,
            Step::Advance(LONGEST),
            Step::Tick,
            Step::Tick,
        ];
        let world = play(which, Vec::new(), &steps);
        assert!(!world.ended.get() && world.wire.borrow().is_empty());
        assert_eq!(world.bench.counters().taken, 3);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Whatever happens in between, no NMI of ours is called foreign, and as soon as the adversary rests, sampling goes on.
    #[test]
    fn no_overflow_is_lost_for_good_and_no_nmi_of_ours_is_foreign(
        which in 0usize..5,
        choices in prop::collection::vec(any::<u8>(), 0..600),
        steps in prop::collection::vec(step(0), 0..120),
    ) {
        let world = play(which, choices, &steps);
        prop_assert!(!world.ended.get());
        world.choices.borrow_mut().clear();
        world.monitor.drops.set(false);
        world.bench.stop();
        // One to stop, and two until nothing is owed any more.
        (0..3).for_each(|_| world.tick());
        prop_assert!(world.bench.is_in(Phase::Idle));
        let counters = world.bench.counters();
        prop_assert!(!world.monitor.is_running() && !world.monitor.unmasked.get());
        prop_assert_eq!(world.bench.driver.cpu(0).unwrap().0, counters.taken);
        world.bench.start(SourceRequest::Pmu).unwrap();
        world.tick();
        for round in 1..=20 {
            prop_assert!(world.monitor.is_running() && world.monitor.unmasked.get());
            world.advance(LONGEST);
            world.deliver();
            world.take_nmi();
            prop_assert_eq!(world.bench.counters().taken, counters.taken + round);
            world.tick();
        }
    }

    /// The same in the middle of a run: within three ticks there is a sample, whatever state the adversary has left.
    #[test]
    fn a_run_recovers_by_itself(
        which in 0usize..5,
        choices in prop::collection::vec(any::<u8>(), 0..600),
        steps in prop::collection::vec(step(0), 0..120),
    ) {
        let steps: Vec<_> = steps.into_iter().filter(|step| !matches!(step, Step::Stop | Step::Start(_))).collect();
        let world = play(which, choices, &[&[Step::Start(SourceRequest::Pmu)][..], &steps].concat());
        world.choices.borrow_mut().clear();
        world.monitor.drops.set(false);
        world.tick();
        let taken = world.bench.counters().taken;
        for _ in 0..3 {
            world.advance(2 * LONGEST);
            while !world.wire.borrow().is_empty() {
                world.deliver();
                world.take_nmi();
            }
            world.tick();
        }
        prop_assert!(!world.ended.get());
        prop_assert!(world.bench.counters().taken > taken);
    }

    /// A foreign NMI ends the machine, unless it comes with one of ours or within the bound; `take_nmi` judges.
    #[test]
    fn a_foreign_nmi_is_swallowed_within_the_bound_only(
        which in 0usize..5,
        choices in prop::collection::vec(any::<u8>(), 0..600),
        steps in prop::collection::vec(step(2), 0..120),
    ) {
        play(which, choices, &steps);
    }
}
