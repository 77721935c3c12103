//! Who runs, where, and for how long.

use super::*;
use crate::base::cpu::CpuId;
use crate::hardware::Hardware;
use crate::sched::leave::Next;
use crate::sim::machine::Point;
use crate::sim::run::Entry;
use ipc::abi::trace::InterruptKind;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Threads of one program with these priorities, and the first program asleep.
fn threads(sim: &mut Sim, priorities: &[u64]) -> Vec<(User, Handle)> {
    let root = sim.root;
    let program = sim.program(100);
    let made: Vec<_> = priorities
        .iter()
        .map(|&priority| {
            let (user, thread) = sim.held(program);
            let set = [raw(thread), priority, u64::MAX];
            sim.issue(root, Syscall::thread_set, &set).results();
            (user, thread)
        })
        .collect();
    for (_, thread) in &made {
        sim.issue(root, Syscall::thread_start, &[raw(*thread)])
            .results();
    }
    made
}

fn asleep(sim: &mut Sim) {
    let root = sim.root;
    assert_eq!(
        sim.issue(root, Syscall::sleep, &[1 << 50]),
        Outcome::Blocked
    );
}

#[test]
fn the_highest_runs_and_equals_take_turns() {
    let mut sim = Sim::new(1);
    let made = threads(&mut sim, &[5, 9, 9, 1]);
    asleep(&mut sim);
    let mut ran = Vec::new();
    for _ in 0..4 {
        ran.push(
            made.iter()
                .position(|(user, _)| sim.runs_on(*user).is_some())
                .unwrap(),
        );
        sim.ticks(1);
    }
    assert!(ran == [1, 2, 1, 2] || ran == [2, 1, 2, 1], "{ran:?}");
    sim.tear_down();
}

#[test]
fn yielding_lets_an_equal_run_and_nobody_below() {
    let mut sim = Sim::new(1);
    let made = threads(&mut sim, &[9, 9, 5]);
    asleep(&mut sim);
    let first = made
        .iter()
        .find(|(user, _)| sim.runs_on(*user).is_some())
        .unwrap()
        .0;
    sim.step(first, Syscall::yield_now, &[]);
    let second = made
        .iter()
        .find(|(user, _)| sim.runs_on(*user).is_some())
        .unwrap()
        .0;
    assert!(first != second && second != made[2].0);
    sim.step(second, Syscall::yield_now, &[]);
    assert_eq!(sim.runs_on(first), Some(0));
    // Alone at its priority it goes on.
    sim.step(first, Syscall::sleep, &[1 << 60]);
    sim.step(second, Syscall::yield_now, &[]);
    assert_eq!(sim.runs_on(second), Some(0));
    sim.tear_down();
}

/// Several threads that one entry makes ready spread over the idle CPUs at once, without a tick.
#[test]
fn what_wakes_together_spreads_at_once() {
    let mut sim = Sim::new(4);
    let made = threads(&mut sim, &[5, 5, 5, 5]);
    asleep(&mut sim);
    let deadline = sim.machine.now().0 + 1_000_000;
    for (user, _) in &made {
        assert_eq!(
            sim.issue(*user, Syscall::sleep, &[deadline]),
            Outcome::Blocked
        );
    }
    assert!(sim.next.iter().all(|next| matches!(next, Next::Idle)));
    // One CPU comes first, and finds the deadlines of all that slept there.
    sim.machine.advance(1_000_000);
    sim.settle();
    for (user, _) in made {
        assert!(sim.runs_on(user).is_some());
    }
    sim.tear_down();
}

#[test]
fn a_pinned_thread_runs_there_and_nowhere_else() {
    let mut sim = Sim::new(2);
    let made = threads(&mut sim, &[9, 9]);
    let root = sim.root;
    for (_, thread) in &made {
        let pin = [raw(*thread), 9, 1];
        sim.issue(root, Syscall::thread_set, &pin).results();
    }
    asleep(&mut sim);
    let mut seen = [false; 2];
    for _ in 0..4 {
        assert!(sim.cpu(0).current().is_none(), "CPU 0 has nothing to run");
        for (index, (user, _)) in made.iter().enumerate() {
            seen[index] |= sim.runs_on(*user) == Some(1);
        }
        sim.ticks(1);
    }
    assert_eq!(seen, [true, true]);
    // One unpins itself, and the idle CPU takes one of them.
    let current = made
        .iter()
        .find(|(user, _)| sim.runs_on(*user) == Some(1))
        .unwrap()
        .0;
    sim.issue(current, Syscall::thread_set, &[0, 9, u64::MAX])
        .results();
    sim.ticks(1);
    assert!(sim.cpu(0).current().is_some());
    sim.tear_down();
}

/// A thread that pins itself elsewhere goes there; one that is pinned while it runs goes when its CPU hears of it.
#[test]
fn a_running_thread_moves_to_its_pin() {
    let mut sim = Sim::new(2);
    let made = threads(&mut sim, &[9]);
    let (user, thread) = made[0];
    let root = sim.root;
    for cpu in [0, 1, 0] {
        sim.issue(root, Syscall::thread_set, &[raw(thread), 31, cpu])
            .results();
        sim.ticks(2);
        let on = sim.schedule(user) as u64;
        assert_eq!(on, cpu);
    }
    let other = 1 - sim.schedule(user);
    sim.issue(user, Syscall::thread_set, &[0, 31, other as u64])
        .results();
    assert_eq!(sim.schedule(user), other);
    sim.tear_down();
}

#[test]
fn an_idle_cpu_steals_what_waits_elsewhere() {
    let mut sim = Sim::new(2);
    let made = threads(&mut sim, &[9, 9]);
    asleep(&mut sim);
    let on: Vec<_> = made
        .iter()
        .map(|(user, _)| sim.runs_on(*user).unwrap())
        .collect();
    assert_ne!(on[0], on[1]);
    // A third becomes ready on a busy CPU; it runs as soon as the other one has nothing to do.
    let third = threads_of(&mut sim, 9);
    assert_eq!(sim.state(third), State::Ready);
    sim.step(made[1].0, Syscall::sleep, &[1 << 60]);
    assert_eq!(sim.runs_on(third), Some(on[1]));
    sim.tear_down();
}

/// One more thread, made while the first program is awake for it.
fn threads_of(sim: &mut Sim, priority: u64) -> User {
    sim.machine.advance(1 << 50);
    sim.settle();
    let made = threads(sim, &[priority])[0].0;
    let root = sim.root;
    assert_eq!(
        sim.issue(root, Syscall::sleep, &[1 << 51]),
        Outcome::Blocked
    );
    made
}

#[test]
fn who_is_above_runs_at_once() {
    let mut sim = Sim::new(1);
    let made = threads(&mut sim, &[5, 9]);
    let (low, high) = (made[0].0, made[1].0);
    asleep(&mut sim);
    let deadline = sim.machine.now().0 + 1000;
    sim.step(high, Syscall::sleep, &[deadline]);
    assert_eq!(sim.runs_on(low), Some(0));
    sim.machine.advance(1000);
    sim.deliver(0);
    assert_eq!(sim.runs_on(high), Some(0));
    // It lowers itself below the other, which goes on at once.
    sim.step(high, Syscall::thread_set, &[0, 3, u64::MAX]);
    assert_eq!(sim.runs_on(low), Some(0));
    sim.enter(0, Entry::Tick);
    assert_eq!(sim.runs_on(low), Some(0));
    sim.tear_down();
}

#[test]
fn nobody_gives_more_than_it_has() {
    let mut sim = Sim::new(2);
    let made = threads(&mut sim, &[5]);
    let user = made[0].0;
    let refused = [[0, 6, u64::MAX], [0, 32, u64::MAX], [0, 5, 2]];
    asleep(&mut sim);
    for set in refused {
        assert_eq!(
            sim.issue(user, Syscall::thread_set, &set).error(),
            Error::BadArgument
        );
    }
    sim.issue(user, Syscall::thread_set, &[0, 4, u64::MAX])
        .results();
    let back = sim.issue(user, Syscall::thread_set, &[0, 5, u64::MAX]);
    assert_eq!(back.error(), Error::BadArgument);
    sim.tear_down();
}

#[test]
fn sleep_ends_at_its_time() {
    let mut sim = Sim::new(2);
    let user = threads(&mut sim, &[5])[0].0;
    asleep(&mut sim);
    assert_eq!(
        sim.issue(user, Syscall::sleep, &[NEVER]).error(),
        Error::BadArgument
    );
    sim.issue(user, Syscall::sleep, &[0]).results();
    let deadline = sim.machine.now().0 + 100;
    assert_eq!(
        sim.issue(user, Syscall::sleep, &[deadline]),
        Outcome::Blocked
    );
    sim.machine.advance(99);
    sim.settle();
    assert_eq!(sim.outcome(user), Outcome::Blocked);
    sim.machine.advance(1);
    sim.settle();
    sim.outcome(user).results();
    sim.tear_down();
}

/// Lets one CPU enter the kernel, and does something else in the middle of that, at this point.
fn in_the_middle(sim: &mut Sim, index: usize, entry: Entry, point: Point, act: impl FnOnce(&Sim)) {
    let meeting = sim.machine.meet(point);
    sim.machine.take_kick(CpuId(index as u8));
    let here: &Sim = sim;
    let next = std::thread::scope(|scope| {
        let there = scope.spawn(|| {
            here.come_in(index, entry);
            here.kernel.leave(here.cpu(index))
        });
        meeting.hold(|| act(here));
        there.join().unwrap()
    });
    sim.next[index] = next;
    sim.check();
}

/// A thread that the idle CPU 1 has been kicked for, its program, and the first program's handle to it.
fn about_to_run(sim: &mut Sim) -> (Program, User, Handle) {
    let program = sim.program(60);
    let (user, thread) = sim.held(program);
    assert_eq!(sim.schedule(sim.root), 0);
    sim.step(sim.root, Syscall::thread_start, &[raw(thread)]);
    assert_eq!(sim.state(user), State::Ready);
    (program, user, thread)
}

/// Who is ended up to the last moment before a CPU runs it does not run.
#[test]
fn a_kill_in_the_middle_of_a_switch_is_seen() {
    let mut sim = Sim::new(2);
    let (program, user, _) = about_to_run(&mut sim);
    in_the_middle(&mut sim, 1, Entry::Kick, Point::Load, |sim| {
        sim.prepare(sim.root, Syscall::process_kill, &[raw(program.handle), 0]);
        sim.come_in(0, Entry::Syscall);
    });
    assert_eq!(sim.outcome(user), Outcome::Ended);
    sim.tear_down();
}

/// Who is pinned to another CPU, or set below one that waits, in the middle of a switch does not run here.
#[test]
fn a_change_in_the_middle_of_a_switch_is_seen() {
    for (priority, cpu) in [(20, 0), (3, u64::MAX)] {
        let mut sim = Sim::new(2);
        let program = sim.program(60);
        let (other, handle) = sim.held(program);
        let (_, user, thread) = about_to_run(&mut sim);
        sim.step(sim.root, Syscall::thread_set, &[raw(handle), 10, 1]);
        sim.step(sim.root, Syscall::thread_start, &[raw(handle)]);
        in_the_middle(&mut sim, 1, Entry::Kick, Point::Switch, |sim| {
            sim.prepare(sim.root, Syscall::thread_set, &[raw(thread), priority, cpu]);
            sim.come_in(0, Entry::Syscall);
        });
        assert_eq!(sim.runs_on(other), Some(1));
        assert_eq!(sim.state(user), State::Ready);
        sim.tear_down();
    }
}

/// The same where a call hands the CPU over.
#[test]
fn a_server_that_is_pinned_as_it_is_called_runs_there() {
    let mut pair = Pair::new(2);
    let (root, client) = (pair.sim.root, pair.client);
    let (server, thread) = pair.sim.held(pair.serves);
    for (user, what, arguments) in [
        (pair.server, Syscall::sleep, [1 << 50, 0]),
        (root, Syscall::thread_start, [raw(thread), 0]),
        (server, Syscall::receive, [raw(pair.ear), NEVER]),
    ] {
        pair.sim.issue(user, what, &arguments);
    }
    let (there, here) = (pair.sim.schedule(client), pair.sim.schedule(root));
    let call = [raw(pair.mouth), tag(1), NEVER];
    pair.sim.prepare(client, Syscall::call, &call);
    in_the_middle(&mut pair.sim, there, Entry::Syscall, Point::Switch, |sim| {
        let pin = [raw(thread), 31, here as u64];
        sim.prepare(root, Syscall::thread_set, &pin);
        sim.come_in(here, Entry::Syscall);
    });
    assert_eq!(pair.sim.state(client), State::Called);
    assert_ne!(pair.sim.runs_on(server), Some(there));
    assert_eq!(pair.sim.schedule(server), here);
    pair.end();
}

/// A thread may be pinned between the choice of its CPU and its place in the queue.
#[test]
fn nobody_is_queued_where_he_may_not_run() {
    let mut sim = Sim::new(2);
    let program = sim.program(60);
    let (user, thread) = sim.held(program);
    let pin = [raw(thread), 9, 1];
    sim.issue(sim.root, Syscall::thread_set, &pin).results();
    assert!(sim.thread(user).claim_held());
    let (cpu, kernel) = (sim.cpu(0), &sim.kernel);
    assert_eq!(kernel.enqueue(cpu, user.0, CpuId(0), false), None);
    assert_eq!(sim.state(user), State::Claimed);
    assert_eq!(kernel.enqueue(cpu, user.0, CpuId(1), false), Some(9));
    sim.tear_down();
}

/// What an entry takes in which each look at the clock takes this long, from the first to the last look.
fn measured(sim: &mut Sim, cpu: usize, entry: Entry, look: u64) -> u64 {
    let before = sim.machine.now().0;
    sim.machine.slow_down(look);
    sim.come_in(cpu, entry);
    sim.leave(cpu);
    sim.machine.slow_down(0);
    sim.machine.now().0 - before - look
}

/// Whatever an entry is about, it is measured from its beginning to its end, for its own CPU, and the longest is kept.
#[test]
fn the_longest_entry_of_each_cpu_is_known() {
    for entry in [
        Entry::Syscall,
        Entry::Tick,
        Entry::Timer,
        Entry::Kick,
        Entry::Line(3),
        Entry::Fault(6),
        Entry::Spurious,
    ] {
        let mut sim = Sim::new(2);
        let user = threads(&mut sim, &[5])[0].0;
        let cpu = sim.schedule(user);
        sim.prepare(user, Syscall::null, &[]);
        let took = measured(&mut sim, cpu, entry, 100);
        assert!(took >= 100);
        let longest = |sim: &Sim, cpu| sim.cpu(cpu).load.longest_entry.load(Relaxed);
        assert_eq!(longest(&sim, cpu), took, "{entry:?}");
        assert_eq!(longest(&sim, 1 - cpu), 0, "{entry:?}");
        measured(&mut sim, cpu, Entry::Spurious, 1);
        assert_eq!(longest(&sim, cpu), took, "{entry:?}");
        sim.tear_down();
    }
}

/// A CPU that idled takes up what is ready, whatever woke it, and is then not taken for idle.
#[test]
fn an_interrupt_about_nothing_ends_idling_too() {
    let mut sim = Sim::new(2);
    let (_, user, _) = about_to_run(&mut sim);
    sim.enter(1, Entry::Spurious);
    assert_eq!(sim.runs_on(user), Some(1));
    assert_eq!(sim.kernel.idle.load(Relaxed), 0);
    sim.tear_down();
}

/// A tick leaves frames that wait to whoever is at them: of many CPUs that end a process, none is held up in its tick.
#[test]
fn a_tick_does_not_wait_for_the_frames() {
    let sim = Sim::new(2);
    let (kernel, machine) = (sim.kernel, sim.machine);
    let (holder, ticked) = (&sim.cpu(0).token, sim.cpu(1));
    let frame = kernel.frames.allocate(holder).expect("one is free");
    let epoch = kernel.grace.retire_epoch();
    kernel.frames.retire(holder, frame, epoch);
    let (held, at) = (kernel.frames.hold(holder), sim.interrupted(1));
    let (sender, over) = mpsc::channel();
    thread::spawn(move || {
        machine.play(CpuId(1));
        kernel.interrupted(ticked, InterruptKind::Timer, 0);
        kernel.tick(ticked, &at, 0);
        sender.send(())
    });
    let waited = over.recv_timeout(Duration::from_secs(120));
    drop(held);
    assert_eq!(waited, Ok(()));
}
