//! One CPU, and an adversary between any two accesses: whatever happens when, no overflow is lost for good, and no NMI of ours is foreign.

use super::setup::leak;
use super::{Bench, LONGEST, bench, proved};
use crate::base::cpu::CpuId;
use crate::pmu::Claims;
use crate::pmu::fake::thread::install;
use crate::pmu::fake::{FakeMonitor, claims_of_all};
use crate::profile::Purpose;
use ipc::abi::profile::{Phase, SourceRequest};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

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

/// Nothing is owed from before: so what the stop owes must be said before the CPU disarms.
#[test]
fn an_interrupt_at_any_step_of_a_stop_is_ours() {
    const PLACES: usize = 60;
    const DELIVER: u8 = 12;
    for which in 0..claims_of_all().len() {
        for place in 0..PLACES {
            let steps = [
                Step::Start(SourceRequest::Pmu),
                Step::Tick,
                Step::Tick,
                Step::Advance(2 * LONGEST),
                Step::Stop,
                Step::Tick,
                Step::Tick,
            ];
            let mut choices = vec![0; PLACES];
            choices[place] = DELIVER;
            let world = play(which, choices, &steps);
            assert!(!world.ended.get() && world.wire.borrow().is_empty());
        }
    }
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
