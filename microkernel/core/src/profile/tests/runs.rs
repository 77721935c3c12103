//! Whole profiles: the driver under any order of starts, stops, ticks and reads, against the obvious model.

use super::fake::{Fake, FakeThreads};
use super::setup::{self, MAP, USER, leak, machine};
use crate::base::cpu::{Cpu, CpuId};
use crate::profile::Machine;
use crate::profile::cpu::{CpuState, DISARMED};
use crate::profile::driver::{Driver, Wake};
use crate::profile::source::{SampleSource, Tick, Trigger};
use ipc::abi::Error;
use ipc::abi::profile::{DOMAINS_ALL, EventSpec, Phase, Source, SourceRequest};
use proptest::prelude::*;
use sample_ring::{Counts, Reader};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64 as Mask, Ordering::Relaxed};

/// The process that begins profiles.
const OWNER: u32 = 7;
const CYCLES: EventSpec = EventSpec {
    event: 0,
    raw: 0,
    frequency: 0,
    domains: DOMAINS_ALL,
};
/// A source that samples in the tick, and checks how the driver handles it.
#[derive(Default)]
struct Strict {
    cpus: OnceLock<&'static [CpuState]>,
    running: Mask,
}

impl Strict {
    fn switch(&self, cpu: CpuId) {
        let armed = self.cpus.get().unwrap()[cpu.index()].armed.load(Relaxed);
        assert!(
            armed != DISARMED,
            "set before the source starts, cleared after it stops"
        );
        self.running.fetch_xor(cpu.bit(), Relaxed);
    }
}

impl SampleSource for Strict {
    fn id(&self) -> Source {
        Source::TimerNmi
    }
    fn frequency(&self) -> u64 {
        997
    }
    fn trigger(&self) -> Trigger {
        Trigger::Tick
    }
    fn arm(&self, cpu: CpuId, _: u64) {
        self.switch(cpu);
        assert_ne!(self.running.load(Relaxed) & cpu.bit(), 0, "armed twice");
    }
    fn disarm(&self, cpu: CpuId) {
        self.switch(cpu);
        assert_eq!(self.running.load(Relaxed) & cpu.bit(), 0, "never armed");
    }
}

/// A driver of some CPUs, and a reader of each of its rings.
struct Bench {
    driver: Driver,
    strict: &'static Strict,
    readers: Vec<Reader<'static>>,
    machine: &'static Fake,
    threads: FakeThreads<'static>,
    token: Cpu,
}

fn bench(cpus: usize) -> Bench {
    let (machine, threads) = machine();
    let (states, readers) = setup::cpus(cpus);
    let strict = leak(Strict::default());
    assert!(strict.cpus.set(states).is_ok());
    let sources: &'static [&'static dyn SampleSource] =
        leak([strict as &dyn SampleSource, leak(Tick { frequency: 100 })]);
    Bench {
        driver: Driver::new(states, sources, MAP).unwrap(),
        strict,
        readers,
        machine,
        threads,
        token: Cpu::new(CpuId(0)),
    }
}

impl Bench {
    fn start(&self, request: SourceRequest) -> Result<Source, Error> {
        self.driver.start(&self.token, OWNER, request, &[CYCLES])
    }
    fn stop(&self) -> Result<(), Error> {
        self.driver.stop(&self.token, self.machine.tsc())
    }
    fn tick(&self, cpu: usize) -> Wake {
        self.driver.on_tick(
            CpuId(cpu as u8),
            &USER,
            cpu as u64,
            self.machine,
            &self.threads,
        )
    }
    fn phase(&self) -> Phase {
        Phase::from_raw(self.driver.status(&self.token).phase).unwrap()
    }
}

#[test]
fn a_profile_from_start_to_end() {
    let bench = bench(2);
    let status = || bench.driver.status(&bench.token);
    assert_eq!((bench.tick(0), bench.machine.count()), (Wake::No, 0));
    assert_eq!(bench.stop(), Err(Error::WrongState));
    assert_eq!(bench.start(SourceRequest::Tick), Ok(Source::Tick));
    assert_eq!(bench.start(SourceRequest::Tick), Err(Error::Busy));
    assert_eq!(
        (status().phase, status().stragglers),
        (Phase::Arming as u64, 0b11)
    );
    assert_eq!(bench.tick(1), Wake::No);
    assert_eq!((status().stragglers, status().opened), (0b01, 0));
    assert_eq!(bench.tick(0), Wake::Phase);
    let open = status();
    assert_eq!((open.phase, open.stragglers), (Phase::Open as u64, 0));
    assert_eq!(
        (open.source, open.frequency, open.cpus),
        (Source::Tick as u64, 100, 2)
    );
    assert_eq!(
        [bench.tick(0), bench.tick(0), bench.tick(1)],
        [Wake::No, Wake::Ring, Wake::No]
    );
    assert_eq!((bench.stop(), bench.stop()), (Ok(()), Ok(())));
    assert_eq!(status().stragglers, 0b11);
    assert_eq!(bench.start(SourceRequest::Tick), Err(Error::Busy));
    assert_eq!(
        [bench.tick(0), bench.tick(0), bench.tick(1)],
        [Wake::No, Wake::No, Wake::Phase]
    );
    let end = status();
    assert_eq!(
        (end.phase, end.source, end.frequency),
        (Phase::Idle as u64, Source::Tick as u64, 100),
        "kept for who asks after the end"
    );
    assert!(0 < end.opened && end.opened < end.closed, "kept too");
    assert_eq!((end.counters.taken, end.counters.missed), (3, 1));
    assert!(end.counters.cost >= 3);
    assert_eq!(
        bench
            .driver
            .cpu(1)
            .map(|(head, counters)| (head, counters.taken)),
        Some((1, 1))
    );
    assert_eq!(bench.driver.cpu(2), None);
    assert_eq!(bench.start(SourceRequest::Tick), Ok(Source::Tick));
    assert_eq!(
        (status().opened, status().closed),
        (0, 0),
        "a new run begins anew"
    );
}

#[test]
fn a_profile_ends_with_the_process_that_began_it() {
    let bench = bench(1);
    let ended = |pid| {
        bench
            .driver
            .process_ended(&bench.token, pid, bench.machine.tsc());
    };
    ended(OWNER);
    assert_eq!(bench.start(SourceRequest::Tick), Ok(Source::Tick));
    assert_eq!((bench.tick(0), bench.phase()), (Wake::Phase, Phase::Open));
    ended(OWNER + 1);
    assert_eq!(bench.phase(), Phase::Open);
    ended(OWNER);
    assert_eq!(bench.phase(), Phase::Disarming);
    assert_eq!((bench.tick(0), bench.phase()), (Wake::Phase, Phase::Idle));
    ended(OWNER);
    assert_eq!(bench.start(SourceRequest::Tick), Ok(Source::Tick));
}

#[test]
fn a_refused_start_arms_nothing() {
    let bench = bench(1);
    let token = &bench.token;
    let no_specs = bench.driver.start(token, OWNER, SourceRequest::Tick, &[]);
    assert_eq!(no_specs, Err(Error::BadArgument));
    assert_eq!(bench.start(SourceRequest::Pmu), Err(Error::Unsupported));
    assert_eq!((bench.phase(), bench.tick(0)), (Phase::Idle, Wake::No));
    assert_eq!(
        bench.start(SourceRequest::Best),
        Ok(Source::TimerNmi),
        "the first is the best"
    );
}

#[test]
fn a_tick_of_a_cpu_that_has_no_ring_is_harmless() {
    let bench = bench(1);
    bench.start(SourceRequest::Tick).unwrap();
    assert_eq!(
        (bench.tick(0), bench.tick(1), bench.tick(63)),
        (Wake::Phase, Wake::No, Wake::No)
    );
    assert_eq!(bench.driver.status(&bench.token).counters.taken, 0);
}

#[test]
fn sixty_four_cpus_fit_and_no_more() {
    let bench = bench(64);
    bench.start(SourceRequest::Tick).unwrap();
    let wakes: Vec<Wake> = (0..64).map(|cpu| bench.tick(cpu)).collect();
    assert_eq!(wakes.iter().position(|&wake| wake == Wake::Phase), Some(63));
    let (more, _) = setup::cpus(65);
    assert_eq!(Driver::new(more, &[], MAP).err(), Some(Error::LimitReached));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Start,
    Stop,
    Tick(usize),
    Drain(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Start),
        1 => Just(Step::Stop),
        20 => (0usize..4).prop_map(Step::Tick),
        2 => (0usize..4).prop_map(Step::Drain),
    ]
}

/// What must be true, told without masks and words.
struct Model {
    phase: Phase,
    armed: Vec<bool>,
    /// CPUs that have done what the phase waits for.
    done: Vec<bool>,
    taken: Vec<u64>,
}

impl Model {
    fn tick(&mut self, cpu: usize) -> bool {
        let waits = !self.done[cpu];
        match self.phase {
            Phase::Idle => return false,
            Phase::Arming | Phase::Open if self.armed[cpu] => self.taken[cpu] += 1,
            Phase::Arming | Phase::Open => (self.armed[cpu], self.done[cpu]) = (true, true),
            Phase::Disarming => (self.armed[cpu], self.done[cpu]) = (false, true),
        }
        let turns = waits && self.done.iter().all(|&done| done);
        if turns {
            self.phase = if self.phase == Phase::Arming {
                Phase::Open
            } else {
                Phase::Idle
            };
        }
        turns
    }
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.done.fill(false);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The driver does what the model does, arms and disarms each source once a run, takes no sample after the end, says
    /// when it is to be heard, and every sample that it took is read or counted as lost.
    #[test]
    fn any_order_is_a_run_after_another(cpus in 1usize..5, steps in prop::collection::vec(step(), 0..250)) {
        let mut bench = bench(cpus);
        let mut model = Model {
            phase: Phase::Idle,
            armed: vec![false; cpus],
            done: vec![true; cpus],
            taken: vec![0; cpus],
        };
        // Records since profd was last told to look at this CPU's ring.
        let mut unheard = vec![0; cpus];
        for step in steps {
            match step {
                Step::Start => {
                    let expected = if model.phase == Phase::Idle { Ok(Source::TimerNmi) } else { Err(Error::Busy) };
                    prop_assert_eq!(bench.start(SourceRequest::Timer), expected);
                    if expected.is_ok() {
                        model.enter(Phase::Arming);
                    }
                }
                Step::Stop => {
                    let expected = if model.phase == Phase::Idle { Err(Error::WrongState) } else { Ok(()) };
                    prop_assert_eq!(bench.stop(), expected);
                    if matches!(model.phase, Phase::Arming | Phase::Open) {
                        model.enter(Phase::Disarming);
                    }
                }
                Step::Tick(cpu) => {
                    let cpu = cpu % cpus;
                    let before = model.taken[cpu];
                    let turns = model.tick(cpu);
                    unheard[cpu] += model.taken[cpu] - before;
                    let wake = bench.tick(cpu);
                    prop_assert_eq!(wake == Wake::Phase, turns);
                    match wake {
                        Wake::No => {}
                        Wake::Phase => unheard.fill(0),
                        Wake::Ring => unheard[cpu] = 0,
                    }
                    prop_assert!(unheard[cpu] < 2, "a quarter of the ring went unheard");
                }
                Step::Drain(cpu) => {
                    for sample in bench.readers[cpu % cpus].drain().unwrap() {
                        prop_assert_eq!(usize::from(sample.unwrap().header().cpu), cpu % cpus);
                    }
                }
            }
            let status = bench.driver.status(&bench.token);
            prop_assert_eq!(status.phase, model.phase as u64);
            let bits = |of: &dyn Fn(usize) -> bool| (0..cpus).filter(|&cpu| of(cpu)).map(|cpu| 1 << cpu).sum::<u64>();
            prop_assert_eq!(status.stragglers, bits(&|cpu| !model.done[cpu]));
            prop_assert_eq!(bench.strict.running.load(Relaxed), bits(&|cpu| model.armed[cpu]));
            prop_assert_eq!(status.counters.taken, model.taken.iter().sum::<u64>());
            prop_assert!(model.phase != Phase::Open || status.opened > 0);
        }
        for (cpu, reader) in bench.readers.iter_mut().enumerate() {
            prop_assert!(reader.drain().unwrap().all(|sample| sample.is_ok()));
            let Counts { read, lost, damaged } = reader.counts();
            let (head, counters) = bench.driver.cpu(cpu).unwrap();
            prop_assert_eq!([read + lost, head, counters.taken], [model.taken[cpu]; 3]);
            prop_assert_eq!(damaged, 0);
        }
    }
}
