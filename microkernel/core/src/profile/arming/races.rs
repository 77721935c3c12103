//! Start, stop and the ticks of two CPUs in every order, and with every value that a relaxed load may return.
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p kcore --lib arming::races`.

use super::{Arming, Duty};
use crate::base::addr::Tsc;
use crate::base::cpu::CpuId;
use ipc::abi::profile::Phase;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use loom::thread;

const CPUS: u8 = 2;
const ALL: u64 = 0b11;

/// What a source is doing.
const NEVER_RAN: u64 = 0;
const RUNS: u64 = 1;
const STOPPED: u64 = 2;

/// The protocol, and each CPU's source that it governs. Relaxed, so that only the protocol orders them.
struct Machine {
    arming: Arming,
    sources: [AtomicU64; CPUS as usize],
}

impl Machine {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            arming: Arming::new(),
            sources: [AtomicU64::new(NEVER_RAN), AtomicU64::new(NEVER_RAN)],
        })
    }
    fn count(&self, state: u64) -> usize {
        let in_state = |source: &&AtomicU64| source.load(Relaxed) == state;
        self.sources.iter().filter(in_state).count()
    }
    /// What a CPU does in its tick.
    fn tick(&self, cpu: u8) {
        let source = &self.sources[usize::from(cpu)];
        match self.arming.duty(CpuId(cpu)) {
            Duty::Rest => {}
            Duty::Arm => {
                assert_ne!(source.load(Relaxed), RUNS, "armed twice");
                source.store(RUNS, Relaxed);
                if self.arming.armed(CpuId(cpu), Tsc(1)) {
                    // By now a stop may have come, and the other CPU may have followed it.
                    assert_eq!(self.count(NEVER_RAN), 0, "open before all were armed");
                }
            }
            Duty::Sample => {
                assert_eq!(source.load(Relaxed), RUNS, "sampled while not armed");
            }
            Duty::Disarm => {
                source.store(STOPPED, Relaxed);
                if self.arming.disarmed(CpuId(cpu)) {
                    assert_eq!(self.count(RUNS), 0, "idle before all were disarmed");
                }
            }
        }
    }
    /// Ticks on until this CPU has disarmed. Bounded, because stop was called before.
    fn finish(&self, cpu: u8) {
        while self.arming.undisarmed.load(Relaxed) & CpuId(cpu).bit() != 0 {
            self.tick(cpu);
        }
    }
}

fn explore(scenario: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(scenario);
}

fn on_cpu(machine: &Arc<Machine>, cpu: u8, ticks: u32) -> thread::JoinHandle<()> {
    let machine = machine.clone();
    thread::spawn(move || {
        for _ in 0..ticks {
            machine.tick(cpu);
        }
    })
}

#[test]
fn the_window_opens_once_all_are_armed() {
    explore(|| {
        let machine = Machine::new();
        let others = [on_cpu(&machine, 0, 2), on_cpu(&machine, 1, 2)];
        machine.arming.start(ALL);
        others.into_iter().for_each(|other| other.join().unwrap());
        machine.tick(0);
        machine.tick(1);
        let standing = machine.arming.standing();
        assert_eq!((standing.phase, standing.stragglers), (Phase::Open, 0));
        assert_eq!((machine.count(RUNS), standing.opened), (2, 1));
    });
}

#[test]
fn a_stop_while_cpus_arm_leaves_nothing_armed() {
    explore(|| {
        let machine = Machine::new();
        machine.arming.start(ALL);
        let others = [on_cpu(&machine, 0, 2), on_cpu(&machine, 1, 2)];
        assert!(machine.arming.stop(Tsc(2)));
        others.into_iter().for_each(|other| other.join().unwrap());
        machine.finish(0);
        machine.finish(1);
        assert_eq!(machine.arming.standing().phase, Phase::Idle);
        assert_eq!(machine.count(RUNS), 0);
    });
}

#[test]
fn a_new_run_finds_nothing_of_the_last_one() {
    explore(|| {
        let machine = Machine::new();
        machine.arming.start(ALL);
        let other = on_cpu(&machine, 1, 2);
        machine.tick(0);
        assert!(machine.arming.stop(Tsc(2)));
        machine.finish(0);
        // The other CPU may be anywhere in its part of ending the first run.
        if machine.arming.is_idle() {
            assert_eq!(machine.count(RUNS), 0);
            machine.arming.start(ALL);
            machine.tick(0);
        }
        other.join().unwrap();
        machine.tick(1);
        let standing = machine.arming.standing();
        assert!(standing.phase == Phase::Idle || machine.sources[0].load(Relaxed) == RUNS);
        assert_eq!(standing.phase == Phase::Open, machine.count(RUNS) == 2);
    });
}
