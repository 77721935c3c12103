//! Host threads as CPUs, which also get NMIs: what the schedule of [`chaos`](super::chaos) cannot reach, since it happens between
//! two instructions. While it rages only the kernel's own assertions look; when all CPUs have left the kernel, every law is
//! checked.

use super::Sim;
use super::run::User;
use crate::base::cpu::CpuId;
use crate::profile::Interrupted;
use crate::sched::leave::Next;
use ipc::abi::trace::InterruptKind;
use proptest::prelude::ProptestConfig;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How long it lasts for each case of a property test: 5 seconds, unless `PROPTEST_CASES` asks for more.
const TIME: Duration = Duration::from_millis(20);
/// How long one round lasts.
const ROUND: Duration = Duration::from_millis(150);

/// Marsaglia's xorshift: enough to make choices with.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn numbers(&mut self) -> [u16; 6] {
        std::array::from_fn(|_| (self.roll() >> 20) as u16)
    }
}

/// Stops the others if this one panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// One CPU, until the round is over. Returns what it was told to do last.
fn play(sim: &Sim, index: usize, seed: u64, over: &AtomicBool, until: Instant) -> Next {
    let _stop = Stop(over);
    let (kernel, machine, cpu) = (&sim.kernel, sim.machine, sim.cpu(index));
    let (id, mut dice) = (CpuId(index as u8), Dice(seed | 1));
    let mut next = sim.next[index];
    machine.play(id);
    sim.send_nmis();
    for turn in 1u64.. {
        if turn.is_multiple_of(64) && (over.load(SeqCst) || Instant::now() > until) {
            break;
        }
        machine.advance(dice.roll() % 2000);
        if dice.roll().is_multiple_of(500) {
            sim.toggle_sampling(cpu);
        }
        let idle = cpu.current().is_none();
        if machine.take_kick(id) {
            kernel.interrupted(cpu, InterruptKind::Kick, 0);
            kernel.kicked(cpu);
        } else if machine.take_timer(id) {
            kernel.interrupted(cpu, InterruptKind::Timer, 0);
            kernel.timer(cpu);
        } else if dice.roll().is_multiple_of(50) {
            let at = Interrupted {
                rip: 0x40_0000,
                rsp: 0,
                rbp: 0,
                rflags: 0x202,
                rcx: 0,
                scratch: 0,
                entered: 0,
                user: !idle,
                idle,
            };
            kernel.interrupted(cpu, InterruptKind::Timer, 0);
            kernel.tick(cpu, &at, 0);
        } else if let Some(current) = cpu.current() {
            let numbers = dice.numbers();
            if numbers[0].is_multiple_of(16) {
                sim.random_touch(index, numbers);
                continue;
            }
            sim.random_call(User(current), (dice.roll() % 256) as usize, numbers);
            kernel.syscall(cpu);
        } else {
            std::thread::yield_now();
            continue;
        }
        next = kernel.leave(cpu);
    }
    next
}

#[test]
fn races_break_no_law() {
    let (start, mut seed, mut clients) = (Instant::now(), 0x9e37_79b9_7f4a_7c15, 0);
    let time = TIME * ProptestConfig::default().cases;
    let mut cpus = 2;
    while start.elapsed() < time {
        let mut sim = Sim::new(cpus);
        sim.patient = false;
        sim.crowd(4);
        sim.settle();
        let (over, until) = (AtomicBool::new(false), Instant::now() + ROUND);
        let next: Vec<Next> = std::thread::scope(|scope| {
            let players: Vec<_> = (0..cpus)
                .map(|index| {
                    seed = Dice(seed).roll();
                    let (sim, over) = (&sim, &over);
                    scope.spawn(move || play(sim, index, seed, over, until))
                })
                .collect();
            players
                .into_iter()
                .map(|player| player.join().unwrap())
                .collect()
        });
        sim.next = next;
        sim.check();
        clients += sim.check_nmis();
        sim.settle();
        sim.tear_down();
        sim.check();
        cpus = 2 + (cpus - 1) % 3;
    }
    assert!(clients > 0, "no sample named one");
}
