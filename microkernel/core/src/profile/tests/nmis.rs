//! Samples by NMI: whatever the order of starts, stops, ticks, due times and arrivals, each NMI that was asked for is claimed once,
//! and none that was not.

use super::fake::{Fake, FakeThreads};
use super::setup::{self, MAP, USER, leak, machine};
use crate::apic::timer::DueSample;
use crate::base::addr::Tsc;
use crate::base::cpu::{Cpu, CpuId};
use crate::profile::driver::Driver;
use crate::profile::source::{SampleSource, Tick, Trigger};
use crate::profile::{Machine, Names, Purpose, ThreadView, Threads};
use ipc::abi::Error;
use ipc::abi::profile::{DOMAINS_ALL, EventSpec, Source, SourceRequest};
use proptest::prelude::*;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64 as Mask, Ordering::Relaxed};

const DUE: DueSample = DueSample { late: 7, missed: 0 };

/// A source of NMIs: what it asked for, and has not come.
struct Nmis {
    trigger: Trigger,
    machine: &'static Fake,
    lost: Mask,
    armed_at: Mask,
}

impl SampleSource for Nmis {
    fn id(&self) -> Source {
        Source::TimerNmi
    }
    fn frequency(&self) -> u64 {
        1000
    }
    fn frequencies(&self) -> RangeInclusive<u64> {
        50..=5000
    }
    fn trigger(&self) -> Trigger {
        self.trigger
    }
    fn arm(&self, cpu: CpuId, frequency: u64) {
        self.armed_at.store(frequency, Relaxed);
        if self.trigger == Trigger::Own {
            self.machine.next_sample(cpu);
        }
    }
    fn disarm(&self, _: CpuId) {}
    fn is_lost(&self, cpu: CpuId) -> bool {
        self.lost.fetch_and(!cpu.bit(), Relaxed) & cpu.bit() != 0
    }
}

struct Bench {
    driver: Driver,
    source: &'static Nmis,
    machine: &'static Fake,
    threads: FakeThreads<'static>,
    token: Cpu,
}

fn bench(cpus: usize, trigger: Trigger) -> Bench {
    let (machine, threads) = machine();
    let source = leak(Nmis {
        trigger,
        machine,
        lost: Mask::new(0),
        armed_at: Mask::new(0),
    });
    let sources: &'static [&'static dyn SampleSource] =
        leak([source as &dyn SampleSource, leak(Tick { frequency: 100 })]);
    let (states, _) = setup::cpus(cpus);
    let driver = Driver::new(states, sources, MAP).unwrap();
    driver.offer(Source::TimerNmi, trigger);
    Bench {
        driver,
        source,
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
    fn tick(&self, cpu: usize) {
        let cpu = CpuId(cpu as u8);
        let _ = self
            .driver
            .on_tick(cpu, &USER, 0, self.machine, &self.threads);
    }
    /// A sample of the next CPU is due, long after any that was taken.
    fn due(&self, cpu: usize) -> Option<CpuId> {
        let now = Tsc(self.machine.tsc().0 + 1000);
        self.driver.on_due(CpuId(cpu as u8), DUE, now)
    }
    fn nmi(&self, cpu: usize) -> bool {
        let cpu = self.driver.state(CpuId(cpu as u8)).unwrap();
        self.driver.on_nmi(cpu, &USER, self.machine, &self.threads)
    }
    fn pending(&self, cpu: usize) -> bool {
        self.driver.expected(CpuId(cpu as u8)).unwrap().is_pending()
    }
}

#[test]
fn a_source_is_used_once_it_is_offered_and_a_proof_is_no_sample() {
    let bench = bench(1, Trigger::Neighbour);
    let unproven = Driver::new(
        &[],
        leak([leak(Tick { frequency: 100 }) as &dyn SampleSource]),
        MAP,
    );
    assert!(unproven.unwrap().expected(CpuId(0)).is_none());
    let expected = bench.driver.expected(CpuId(0)).unwrap();
    assert!(expected.announce(Purpose::Proof) && !expected.announce(Purpose::Sample));
    assert!(bench.nmi(0) && !bench.nmi(0), "claimed once");
    let counters = bench.driver.status(&bench.token).counters;
    assert_eq!((counters.taken, counters.late), (0, 0));
}

#[test]
fn each_cpu_asks_the_next_one_and_the_last_the_first() {
    let bench = bench(3, Trigger::Neighbour);
    let ask = |cpu| bench.due(cpu);
    assert_eq!(ask(0), None, "nothing is on");
    bench.start(SourceRequest::Best).unwrap();
    (0..3).for_each(|cpu| bench.tick(cpu));
    assert_eq!(
        [ask(0), ask(1), ask(2)],
        [1, 2, 0].map(|cpu| Some(CpuId(cpu)))
    );
    assert_eq!(ask(0), None, "the last one is still on its way");
    assert!(bench.nmi(1) && bench.pending(2));
    assert_eq!(ask(0), Some(CpuId(1)));
    let counters = bench.driver.status(&bench.token).counters;
    assert_eq!((counters.asked, counters.missed, counters.taken), (5, 1, 1));
    assert_eq!((counters.delay, counters.delay_max), (35, 7));
}

#[test]
fn a_cpu_that_does_nothing_but_sample_is_given_as_long_for_itself() {
    let bench = bench(2, Trigger::Neighbour);
    bench.start(SourceRequest::Best).unwrap();
    (0..2).for_each(|cpu| bench.tick(cpu));
    let ask = |now| bench.driver.on_due(CpuId(0), DUE, Tsc(now));
    let begun = bench.machine.tsc().0 + 1;
    assert_eq!(ask(begun), Some(CpuId(1)));
    assert!(bench.nmi(1));
    let ended = bench.machine.tsc().0 - 1;
    let rests_until = ended + (ended - begun);
    assert!(ended > begun);
    assert_eq!(ask(ended), None);
    assert_eq!(ask(rests_until - 1), None);
    assert!(!bench.pending(1), "nothing is announced that is not sent");
    // A counter that is far behind: it would be throttled for long.
    assert_eq!(ask(rests_until.wrapping_sub(1 << 30)), Some(CpuId(1)));
    assert!(bench.nmi(1));
    bench.driver.put_off(CpuId(0));
    let counters = bench.driver.status(&bench.token).counters;
    assert_eq!((counters.throttled, counters.taken), (3, 2));
    assert_eq!((counters.asked, counters.missed), (4, 0));
}

/// The threads, of which the sample asks while the CPU before asks for the next sample.
#[derive(Clone, Copy)]
struct AskedMeanwhile<'b> {
    bench: &'b Bench,
    threads: &'b FakeThreads<'static>,
}

impl Threads for AskedMeanwhile<'_> {
    type Thread = usize;

    fn current(&self) -> Option<usize> {
        let now = self.bench.machine.tsc();
        assert_eq!(self.bench.driver.on_due(CpuId(0), DUE, now), None);
        self.threads.current()
    }
    fn names(&self, thread: usize) -> Names<'_> {
        self.threads.names(thread)
    }
    fn view(&self, thread: usize) -> Option<ThreadView<'_>> {
        self.threads.view(thread)
    }
    fn served(&self, thread: usize) -> Option<(usize, u64)> {
        self.threads.served(thread)
    }
    fn sequence(&self, thread: usize) -> u64 {
        self.threads.sequence(thread)
    }
}

#[test]
fn a_cpu_that_takes_a_sample_is_asked_for_no_other_meanwhile() {
    let bench = bench(2, Trigger::Neighbour);
    bench.start(SourceRequest::Best).unwrap();
    (0..2).for_each(|cpu| bench.tick(cpu));
    assert_eq!(bench.due(0), Some(CpuId(1)));
    let threads = AskedMeanwhile {
        bench: &bench,
        threads: &bench.threads,
    };
    let cpu = bench.driver.state(CpuId(1)).unwrap();
    assert!(bench.driver.on_nmi(cpu, &USER, bench.machine, threads));
    assert!(!bench.pending(1), "it would have it right behind this one");
    let counters = bench.driver.status(&bench.token).counters;
    assert!(counters.throttled > 0, "it was asked meanwhile");
    assert_eq!(
        (counters.taken, counters.asked - counters.throttled),
        (1, 1)
    );
}

#[test]
fn a_run_has_the_frequency_that_it_was_asked_for() {
    let bench = bench(1, Trigger::Neighbour);
    let start = |frequency| {
        let cycles = EventSpec {
            domains: DOMAINS_ALL,
            frequency,
            ..EventSpec::default()
        };
        bench
            .driver
            .start(&bench.token, 1, SourceRequest::Timer, &[cycles])
    };
    assert_eq!(start(49), Err(Error::Unsupported));
    for (asked, frequency) in [(0, 1000), (50, 50), (5000, 5000)] {
        start(asked).unwrap();
        bench.tick(0);
        assert_eq!(bench.source.armed_at.load(Relaxed), frequency);
        assert_eq!(bench.driver.status(&bench.token).frequency, frequency);
        bench
            .driver
            .stop(&bench.token, bench.machine.tsc())
            .unwrap();
        bench.tick(0);
    }
}

#[test]
fn an_nmi_of_the_run_before_never_writes_beside_the_tick() {
    let bench = bench(2, Trigger::Neighbour);
    bench.start(SourceRequest::Timer).unwrap();
    (0..2).for_each(|cpu| bench.tick(cpu));
    assert_eq!(bench.due(0), Some(CpuId(1)));
    bench
        .driver
        .stop(&bench.token, bench.machine.tsc())
        .unwrap();
    (0..2).for_each(|cpu| bench.tick(cpu));
    bench.start(SourceRequest::Tick).unwrap();
    (0..2).for_each(|cpu| bench.tick(cpu));
    assert!(bench.nmi(1), "it was asked for");
    let counters = bench.driver.status(&bench.token).counters;
    assert_eq!((counters.taken, counters.late), (0, 1));
}

#[test]
fn a_timer_that_missed_its_time_is_set_again() {
    let bench = bench(1, Trigger::Own);
    bench.start(SourceRequest::Timer).unwrap();
    bench.tick(0);
    assert!(bench.pending(0));
    bench.machine.asked.store(0, Relaxed);
    bench.tick(0);
    assert_eq!(bench.machine.asked.load(Relaxed), 0, "it may still come");
    bench.source.lost.store(1, Relaxed);
    bench.tick(0);
    assert_eq!(bench.machine.asked.load(Relaxed), 1);
    assert!(
        bench.nmi(0) && bench.pending(0),
        "and the next one is asked for"
    );
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Start(bool),
    Stop,
    Tick(usize),
    Due(usize),
    Nmi(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => any::<bool>().prop_map(Step::Start),
        1 => Just(Step::Stop),
        8 => (0usize..4).prop_map(Step::Tick),
        8 => (0usize..4).prop_map(Step::Due),
        8 => (0usize..4).prop_map(Step::Nmi),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn each_nmi_is_claimed_once_and_only_if_it_was_asked_for(
        cpus in 1usize..5, own in any::<bool>(), steps in prop::collection::vec(step(), 0..250)
    ) {
        let (trigger, cpus) = if own { (Trigger::Own, 1) } else { (Trigger::Neighbour, cpus) };
        let bench = bench(cpus, trigger);
        // The one pending bit that each CPU has, what was delivered, and the ticks that sampled.
        let (mut wire, mut claimed) = (vec![false; cpus], 0);
        for step in steps {
            match step {
                Step::Start(tick) => {
                    let request = if tick { SourceRequest::Tick } else { SourceRequest::Timer };
                    let _ = bench.start(request);
                }
                Step::Stop => {
                    let _ = bench.driver.stop(&bench.token, bench.machine.tsc());
                }
                Step::Tick(cpu) => bench.tick(cpu % cpus),
                Step::Due(cpu) => {
                    if let Some(to) = bench.due(cpu % cpus) {
                        prop_assert!(!wire[to.index()], "two would become one");
                        wire[to.index()] = true;
                    }
                }
                Step::Nmi(cpu) => {
                    let cpu = cpu % cpus;
                    let sent = wire[cpu] || bench.machine.asked.load(Relaxed) & 1 << cpu != 0;
                    if sent {
                        wire[cpu] = false;
                        bench.machine.asked.fetch_and(!(1 << cpu), Relaxed);
                    }
                    prop_assert_eq!(bench.nmi(cpu), sent);
                    claimed += u64::from(sent);
                }
            }
            for (cpu, &on_wire) in wire.iter().enumerate() {
                let sent = on_wire || bench.machine.asked.load(Relaxed) & 1 << cpu != 0;
                prop_assert_eq!(bench.pending(cpu), sent, "announced is what is on its way");
            }
        }
        let counters = bench.driver.status(&bench.token).counters;
        let written: u64 = (0..cpus).map(|cpu| bench.driver.cpu(cpu).unwrap().0).sum();
        prop_assert_eq!(written, counters.taken);
        prop_assert!(counters.late <= claimed);
        prop_assert!(claimed - counters.late <= counters.taken, "a claim in a run is a sample");
    }
}
