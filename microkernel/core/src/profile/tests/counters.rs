//! Samples by a CPU's own counter, on a monitor that counts between any two accesses, and with interrupts that take their time, get
//! lost, come with others in one NMI, or come once more than they should. An NMI may come between any two accesses outside of an NMI.

mod interleavings;

use super::fake::{Fake, FakeThreads};
use super::setup::{self, MAP, USER, leak};
use crate::base::cpu::{Cpu, CpuId};
use crate::pmu::fake::thread::install;
use crate::pmu::fake::{FakeMonitor, Mode, claims_of_all};
use crate::pmu::{Claims, Finding};
use crate::profile::driver::Driver;
use crate::profile::source::{CounterSource, SampleSource, Tick, Trigger};
use crate::profile::{Machine, Purpose};
use ipc::abi::Error;
use ipc::abi::monitor::{MonitorInfo, Verdict};
use ipc::abi::profile::{DOMAINS_ALL, EventSpec, Phase, SampleCounters, Source, SourceRequest};
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
    let counters = |id| leak(CounterSource { id }) as &dyn SampleSource;
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
