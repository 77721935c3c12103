//! How processes end: at once for their peers, in steps for their memory, and told when the last frame is back.

use super::*;
use crate::base::regs::Reg;
use crate::hardware::PhysMemory;
use crate::object::Object;
use crate::object::process::Counted;
use crate::sim::run::Entry;
use ipc::abi::exit::{BacktraceEnd, ExitReason, FaultKind, ProcessStatus};
use std::sync::atomic::Ordering::Relaxed;
use zerocopy::FromZeros;
use zerocopy::IntoBytes;

fn status(sim: &mut Sim, program: Program) -> ProcessStatus {
    let root = sim.root;
    let asked = [raw(program.handle)];
    sim.issue(root, Syscall::process_status, &asked).results();
    let mut status = ProcessStatus::new_zeroed();
    sim.machine
        .read_bytes(sim.thread(root).buffer(), status.as_mut_bytes());
    status
}

/// Whether the end of a program has been told; then it is taken.
fn told(sim: &mut Sim, program: Program) -> bool {
    let wait = [raw(program.ended), 0];
    matches!(
        sim.issue(sim.root, Syscall::wait, &wait),
        Outcome::Returned(Ok(_))
    )
}

/// Ticks until the end is told, and sees that nothing of the program is charged by then.
fn await_end(sim: &mut Sim, program: Program) {
    for _ in 0..60 {
        // Each call ends with a step of the work, so the end may come between the two.
        let reclaimed = status(sim, program).reclaimed;
        if told(sim, program) {
            let status = status(sim, program);
            assert_eq!((status.reclaimed, status.threads, status.pages), (1, 0, 0));
            let waiting = sim.kernel.frames.usage(&sim.cpu(0).token).waiting;
            assert_eq!(waiting, 0, "it is told when the last frame is back");
            return;
        }
        assert_eq!(reclaimed, 0, "the end is over, and was not told");
        sim.ticks(1);
    }
    panic!("the end is never told");
}

#[test]
fn a_program_exits_with_its_code() {
    for cpus in [1, 2, 4] {
        let mut sim = Sim::new(cpus);
        let (program, user) = sim.alone(500);
        assert!(!told(&mut sim, program));
        let memory = sim.make(user, Syscall::memory_create, &[0, 400, 0]);
        let map = [0, raw(memory), 0x40_0000, 0, 400, 128];
        sim.issue(user, Syscall::map, &map).results();
        sim.issue(user, Syscall::process_exit, &[42]);
        assert_eq!(sim.outcome(user), Outcome::Ended);
        let seen = status(&mut sim, program);
        assert_eq!((seen.reason, seen.code), (ExitReason::Exited as u64, 42));
        await_end(&mut sim, program);
        sim.tear_down();
    }
}

#[test]
fn the_last_thread_ends_its_process() {
    let mut sim = Sim::new(4);
    let (program, user) = sim.alone(60);
    let second = sim.started(program);
    sim.issue(user, Syscall::thread_exit, &[]);
    sim.ticks(3);
    assert_eq!(status(&mut sim, program).threads, 1);
    sim.issue(second, Syscall::thread_exit, &[]);
    let seen = status(&mut sim, program);
    assert_eq!((seen.reason, seen.code), (ExitReason::Exited as u64, 0));
    await_end(&mut sim, program);
    sim.tear_down();
}

/// From whatever its threads are doing.
#[test]
fn a_kill_reaches_threads_in_every_state() {
    for cpus in [1, 2, 4] {
        let mut sim = Sim::new(cpus);
        let root = sim.root;
        let program = sim.program(100);
        let endpoint = sim.make(root, Syscall::endpoint_create, &[]);
        let rights = Rights::CALL | Rights::RECEIVE | Rights::MINT;
        let own = raw(sim.give(program, endpoint, rights));
        let lonely = sim.make(root, Syscall::endpoint_create, &[]);
        let deaf = raw(sim.give(program, lonely, Rights::CALL));
        let bits = sim.make(root, Syscall::notification_create, &[]);
        let bits = raw(sim.give(program, bits, Rights::WAIT));
        let users: Vec<User> = (0..8).map(|_| sim.started(program)).collect();
        let (held, _) = sim.held(program);
        sim.issue(users[0], Syscall::receive, &[own, NEVER]);
        sim.issue(users[1], Syscall::call, &[own, 0, NEVER]);
        assert_eq!(sim.state(users[1]), State::Called);
        sim.issue(users[2], Syscall::call, &[deaf, 0, 1 << 40]);
        sim.issue(users[3], Syscall::wait, &[bits, NEVER]);
        sim.issue(users[4], Syscall::sleep, &[1 << 40]);
        sim.issue(users[5], Syscall::receive, &[own, 1 << 40]);
        sim.issue(users[6], Syscall::memory_create, &[0, 9, 0]);
        let killed = [raw(program.handle), 7];
        sim.issue(root, Syscall::process_kill, &killed).results();
        // Killing twice changes nothing.
        let again = [raw(program.handle), 8];
        sim.issue(root, Syscall::process_kill, &again).results();
        await_end(&mut sim, program);
        for user in users.into_iter().chain([held]) {
            assert_eq!(sim.outcome(user), Outcome::Ended);
        }
        let seen = status(&mut sim, program);
        assert_eq!((seen.reason, seen.code), (ExitReason::Killed as u64, 7));
        sim.tear_down();
    }
}

#[test]
fn a_fault_that_the_tables_do_not_explain_is_tried_again() {
    let mut sim = Sim::new(1);
    let (program, user) = sim.alone(60);
    let memory = sim.make(user, Syscall::memory_create, &[0, 1, 0]);
    sim.issue(user, Syscall::map, &[0, raw(memory), 0x50_0000, 0, 1, 384])
        .results();
    let cpu = sim.schedule(user);
    // A write, by a program, to a page that was not present: it is, and may be written.
    sim.kernel.fault(sim.cpu(cpu), 14, 0b110, 0x50_0000);
    assert_eq!(status(&mut sim, program).reason, ExitReason::Running as u64);
    let cpu = sim.schedule(user);
    sim.kernel.fault(sim.cpu(cpu), 14, 0b110, 0x50_1000);
    sim.settle();
    assert_eq!(status(&mut sim, program).reason, ExitReason::Faulted as u64);
}

#[test]
fn a_fault_says_where_and_what_the_registers_were() {
    let mut sim = Sim::new(2);
    let (program, user) = sim.alone(60);
    let memory = sim.make(user, Syscall::memory_create, &[0, 1, 0]);
    sim.issue(user, Syscall::map, &[0, raw(memory), 0x50_0000, 0, 1, 384])
        .results();
    let cpu = sim.schedule(user);
    let id = sim.cpu(cpu).token.id();
    let at = sim.machine.touch(id, 0x50_0000, true).unwrap();
    // Two frames on its stack, then one that leads down again.
    for (word, value) in [0x50_0020, 0x40_1111, 0, 0, 0x50_0000, 0x40_2222]
        .iter()
        .enumerate()
    {
        sim.machine.write(at.offset(word as u64 * 8), *value);
    }
    let regs = &sim.thread(user).regs;
    regs.set(Reg::Rsp, 0x50_0000);
    regs.set(Reg::Rbp, 0x50_0000);
    regs.set(Reg::R15, 15);
    sim.enter(cpu, Entry::Fault(14));
    sim.settle();
    assert_eq!(sim.outcome(user), Outcome::Ended);
    let seen = status(&mut sim, program);
    assert_eq!(seen.reason, ExitReason::Faulted as u64);
    let crash = seen.crash;
    assert_eq!(
        (crash.kind, crash.error_code, crash.address),
        (FaultKind::Page as u64, 6, 0xdead)
    );
    assert_eq!((crash.registers[9], crash.registers[17]), (0x50_0000, 15));
    assert_eq!(crash.frames, 3);
    assert_eq!(crash.backtrace[1..3], [0x40_1111, 0x40_2222]);
    assert_eq!(crash.end, BacktraceEnd::Cut as u64);
    await_end(&mut sim, program);
    sim.tear_down();
}

#[test]
fn a_backtrace_says_how_it_ended() {
    const STACK: u64 = 0x50_0000;
    // So many frames of two words, and what RBP and the return address of the last one are.
    let cases = [
        (3, [0, 0x40_0002], (4, BacktraceEnd::Outermost)),
        (3, [7, 0], (3, BacktraceEnd::Outermost)),
        (3, [STACK + 1, 0x40_0002], (4, BacktraceEnd::Cut)),
        (3, [STACK + 4096, 0x40_0002], (4, BacktraceEnd::Cut)),
        (3, [STACK, 0x40_0002], (4, BacktraceEnd::Cut)),
        (15, [0, 0x40_0002], (16, BacktraceEnd::Outermost)),
        (16, [0, 0x40_0002], (16, BacktraceEnd::More)),
        (16, [0, 0], (16, BacktraceEnd::Outermost)),
    ];
    for (frames, last, expected) in cases {
        let mut sim = Sim::new(1);
        let (program, user) = sim.alone(60);
        let memory = sim.make(user, Syscall::memory_create, &[0, 1, 0]);
        sim.issue(user, Syscall::map, &[0, raw(memory), STACK, 0, 1, 384])
            .results();
        let cpu = sim.schedule(user);
        let id = sim.cpu(cpu).token.id();
        let at = sim.machine.touch(id, STACK, true).unwrap();
        let mut words: Vec<u64> = (1..frames)
            .flat_map(|n| [STACK + n * 16, 0x40_0001])
            .collect();
        words.extend(last);
        for (word, value) in words.iter().enumerate() {
            sim.machine.write(at.offset(word as u64 * 8), *value);
        }
        sim.thread(user).regs.set(Reg::Rsp, STACK);
        sim.thread(user).regs.set(Reg::Rbp, STACK);
        sim.enter(cpu, Entry::Fault(6));
        sim.settle();
        let crash = status(&mut sim, program).crash;
        let (count, end) = expected;
        assert_eq!((crash.frames, crash.end), (count, end as u64), "{last:x?}");
    }
}

#[test]
fn a_quota_is_the_parents_and_comes_back() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let before = sim.kernel.process_of(sim.thread(root)).pages.load(Relaxed);
    let program = sim.program(100);
    let first = sim.kernel.process_of(sim.thread(root));
    assert_eq!(first.pages.load(Relaxed), before + 100);
    for (quota, error) in [(7, Error::BadArgument), (1 << 30, Error::QuotaExceeded)] {
        let made = [raw(sim.system), quota, 0, raw(program.ended), 1];
        let refused = sim.issue(root, Syscall::process_create, &made);
        assert_eq!(refused.error(), error);
    }
    sim.issue(root, Syscall::process_kill, &[raw(program.handle), 0])
        .results();
    await_end(&mut sim, program);
    assert_eq!(first.pages.load(Relaxed), before, "when the end is told");
    sim.close(root, program.handle);
    sim.ticks(3);
    assert_eq!(first.pages.load(Relaxed), before);
    sim.tear_down();
}

/// All but what others keep of it: that comes back when they let go.
#[test]
fn what_others_hold_keeps_its_part_of_a_quota() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let first = sim.kernel.process_of(sim.thread(root));
    let before = first.pages.load(Relaxed);
    let program = sim.program(100);
    let kept = [raw(program.handle), 10, 0];
    let kept = sim.make(root, Syscall::memory_create, &kept);
    sim.issue(root, Syscall::process_kill, &[raw(program.handle), 0])
        .results();
    while !told(&mut sim, program) {
        sim.ticks(1);
    }
    // With the node of its list.
    assert_eq!(first.pages.load(Relaxed), before + 11);
    sim.close(root, program.handle);
    sim.ticks(3);
    assert_eq!(first.pages.load(Relaxed), before + 11);
    sim.close(root, kept);
    sim.ticks(6);
    assert_eq!(first.pages.load(Relaxed), before);
    sim.tear_down();
}

/// Who hears of an end can start the next at once, with the same quota.
#[test]
fn the_next_can_start_when_the_end_is_told() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    for _ in 0..4 {
        let (program, user) = sim.alone(400);
        sim.issue(user, Syscall::process_exit, &[0]);
        while status(&mut sim, program).reclaimed == 0 {
            sim.ticks(1);
        }
        let next = [raw(sim.system), 400, 0, raw(program.ended), 1];
        let next = sim.make(root, Syscall::process_create, &next);
        sim.issue(root, Syscall::process_kill, &[raw(next), 0])
            .results();
        for closed in [next, program.handle, program.ended] {
            sim.close(root, closed);
        }
        sim.ticks(6);
    }
    sim.tear_down();
}

/// Nothing goes into a process that has ended, and nothing is lost on the way.
#[test]
fn the_dead_take_nothing() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let program = sim.program(60);
    sim.held(program);
    sim.issue(root, Syscall::process_kill, &[raw(program.handle), 0])
        .results();
    let process = raw(program.handle);
    let memory = sim.make(root, Syscall::memory_create, &[0, 1, 0]);
    let map = [process, raw(memory), 0x40_0000, 0, 1, 128];
    let thread = [process, 0x40_0000, 0, 0, 0, raw(memory)];
    for _ in 0..12 {
        for (what, arguments) in [
            (Syscall::map, &map[..]),
            (Syscall::thread_create, &thread),
            (Syscall::memory_create, &[process, 2, 0]),
        ] {
            let refused = sim.issue(root, what, arguments);
            assert_eq!(refused.error(), Error::PeerDied, "{what:?}");
        }
        // Until its handles are closed it may take one more, which ends with it.
        let thing = sim.make(root, Syscall::notification_create, &[]);
        let given = sim.issue(root, Syscall::handle_give, &[process, raw(thing), 0]);
        if given == Outcome::Returned(Err(Error::PeerDied)) {
            sim.close(root, thing);
            // Nor once its quota has gone back: that is not what is wrong.
            await_end(&mut sim, program);
            let late = [process, 2, 0];
            let refused = sim.issue(root, Syscall::memory_create, &late);
            assert_eq!(refused.error(), Error::PeerDied);
            sim.tear_down();
            return;
        }
        given.results();
        sim.ticks(1);
    }
    panic!("the dead still take handles");
}

/// A child outlives its parent, and its quota goes back to an account that is still there.
#[test]
fn a_child_outlives_its_parent() {
    let mut sim = Sim::new(4);
    let (parent, user) = sim.alone(100);
    let rights = Rights::all() - Rights::MANAGE;
    let system = sim.give(parent, sim.system, rights);
    let ended = sim.make(user, Syscall::notification_create, &[]);
    let made = [raw(system), 20, 0, raw(ended), 1];
    let child = sim.make(user, Syscall::process_create, &made);
    let Object::Process(reference) = sim.object(user, child) else {
        panic!("no process");
    };
    let buffer = sim.make(user, Syscall::memory_create, &[raw(child), 1, 0]);
    let thread = [raw(child), 0x40_0000, 0, 0, 0, raw(buffer)];
    let thread = sim.make(user, Syscall::thread_create, &thread);
    sim.issue(user, Syscall::thread_start, &[raw(thread)])
        .results();
    sim.issue(sim.root, Syscall::process_kill, &[raw(parent.handle), 0])
        .results();
    sim.ticks(10);
    assert!(told(&mut sim, parent));
    assert!(!sim.kernel.process(reference.index()).is_dead());
    sim.tear_down();
}

/// A process that nobody can do anything with any more goes by itself, and its maker hears of it.
#[test]
fn what_nothing_can_reach_ends() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    for threads in 0..3 {
        for process_first in [true, false] {
            let program = sim.program(60);
            let process = program.handle;
            let mut held: Vec<Handle> = (0..threads).map(|_| sim.held(program).1).collect();
            held.insert(if process_first { 0 } else { threads }, process);
            while let Some(handle) = held.pop() {
                assert!(!told(&mut sim, program));
                assert!(!sim.kernel.process(program.slot).is_dead());
                sim.close(root, handle);
            }
            assert!(sim.kernel.process(program.slot).is_dead());
            while !told(&mut sim, program) {
                sim.ticks(1);
            }
            sim.close(root, program.ended);
            sim.ticks(4);
            assert_eq!(sim.totals(), sim.baseline);
        }
    }
}

/// One that can still be started stays, and one that runs needs nobody.
#[test]
fn what_can_be_started_or_runs_stays() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let program = sim.program(60);
    let (user, thread) = sim.held(program);
    sim.close(root, program.handle);
    sim.ticks(3);
    sim.issue(root, Syscall::thread_start, &[raw(thread)])
        .results();
    sim.close(root, thread);
    sim.ticks(3);
    assert!(!sim.kernel.process(program.slot).is_dead());
    sim.issue(user, Syscall::thread_exit, &[]);
    assert_eq!(sim.outcome(user), Outcome::Ended);
    sim.tear_down();
}

/// The last thread that runs takes those along that nobody can start.
#[test]
fn what_only_a_running_thread_reached_ends_with_it() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let program = sim.program(60);
    let (user, running) = sim.held(program);
    let (_, held) = sim.held(program);
    sim.issue(root, Syscall::thread_start, &[raw(running)])
        .results();
    for handle in [running, held, program.handle] {
        sim.close(root, handle);
    }
    sim.ticks(3);
    assert!(!sim.kernel.process(program.slot).is_dead());
    sim.issue(user, Syscall::thread_exit, &[]);
    assert!(sim.kernel.process(program.slot).is_dead());
    sim.ticks(8);
    assert!(told(&mut sim, program));
    sim.close(root, program.ended);
    sim.ticks(4);
    assert_eq!(sim.totals(), sim.baseline);
}

/// What was not started yet ends with who was about to.
#[test]
fn what_was_never_started_ends_with_its_maker() {
    let mut sim = Sim::new(2);
    let (parent, user) = sim.alone(100);
    let rights = Rights::all() - Rights::MANAGE;
    let system = sim.give(parent, sim.system, rights);
    let ended = sim.make(user, Syscall::notification_create, &[]);
    let made = [raw(system), 20, 0, raw(ended), 1];
    sim.make(user, Syscall::process_create, &made);
    sim.issue(user, Syscall::process_exit, &[0]);
    for handle in [parent.handle, parent.ended] {
        sim.close(sim.root, handle);
    }
    sim.ticks(8);
    assert_eq!(sim.totals().0, sim.baseline.0);
}

#[test]
fn when_ids_have_run_out_nothing_is_made() {
    let mut sim = Sim::new(1);
    let root = sim.root;
    let process = sim.kernel.process_of(sim.thread(root));
    let before = process.pages.load(Relaxed);
    let ended = sim.make(root, Syscall::notification_create, &[]);
    let made = [raw(sim.system), 20, 0, raw(ended), 1];
    sim.kernel.next_pid.store(u32::MAX, Relaxed);
    let refused = sim.issue(root, Syscall::process_create, &made);
    assert_eq!(refused.error(), Error::LimitReached);
    assert_eq!(process.pages.load(Relaxed), before, "the quota is back");
    sim.tear_down();
}

#[test]
#[should_panic(expected = "the first program has ended: Exited, 3")]
fn nothing_outlives_the_first_program() {
    let mut sim = Sim::new(2);
    sim.issue(sim.root, Syscall::process_exit, &[3]);
}

/// A slot that only waits for its grace period is not one that there is not.
#[test]
fn slots_on_their_way_back_are_waited_for() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let ended = sim.make(root, Syscall::notification_create, &[]);
    let create = [raw(sim.system), 8, 0, raw(ended), 1];
    for _ in 0..3 {
        let mut made = Vec::new();
        let full = loop {
            match sim.issue(root, Syscall::process_create, &create) {
                Outcome::Returned(Ok([process, ..])) => made.push(handle(process)),
                full => break full,
            }
        };
        assert_eq!(full.error(), Error::OutOfMemory);
        assert_eq!(made.len(), crate::sim::build::PROCESSES - 1);
        for process in made {
            // Nothing that this causes is delivered: the other CPU holds everything up.
            sim.step(root, Syscall::process_kill, &[raw(process), 0])
                .results();
            sim.step(root, Syscall::handle_close, &[raw(process)])
                .results();
        }
    }
    sim.tear_down();
}

/// A thread that has ended and is still named has a slot, and so is on its process's account.
#[test]
fn threads_that_ended_are_counted_until_nobody_names_them() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let (program, _) = sim.alone(60);
    let limit = sim.kernel.limit(Counted::Threads);
    let ended: Vec<_> = (1..limit)
        .map(|_| {
            let (user, handle) = sim.held(program);
            sim.issue(root, Syscall::thread_start, &[raw(handle)])
                .results();
            sim.issue(user, Syscall::thread_exit, &[]);
            sim.ticks(3);
            handle
        })
        .collect();
    let buffer = sim.make(root, Syscall::memory_create, &[0, 1, 0]);
    let thread = [raw(program.handle), 0x40_0000, 0, 0, 0, raw(buffer)];
    let refused = sim.issue(root, Syscall::thread_create, &thread);
    assert_eq!(refused.error(), Error::LimitReached);
    sim.close(root, ended[0]);
    sim.ticks(3);
    sim.held(program);
    sim.tear_down();
}

/// The slot is free only when no CPU can look at what was in it, and process ids do not come again.
#[test]
fn ids_are_never_used_again() {
    let mut sim = Sim::new(2);
    let mut last = 0;
    for _ in 0..40 {
        let (program, user) = sim.alone(20);
        let pid = status(&mut sim, program).pid;
        assert!(pid > last);
        last = pid;
        sim.issue(user, Syscall::process_exit, &[0]);
        await_end(&mut sim, program);
        sim.close(sim.root, program.handle);
        sim.close(sim.root, program.ended);
        sim.ticks(3);
        assert_eq!(sim.totals(), sim.baseline);
    }
}

/// What the kernel made for a program that ended, and keeps, does not keep the program.
#[test]
fn the_rings_do_not_keep_their_first_reader() {
    let mut sim = Sim::new(2);
    for _ in 0..2 {
        let (program, user) = sim.alone(60);
        let profiler = sim.give(program, sim.profiler, Rights::MANAGE);
        let rings = [raw(profiler)];
        let [rings, bytes, _] = sim.issue(user, Syscall::profiler_rings, &rings).results();
        assert_eq!(bytes, 4096);
        let map = [0, rings, 0x40_0000, 0, 1, u64::from(Rights::WRITE.bits())];
        let refused = sim.issue(user, Syscall::map, &map);
        assert_eq!(refused.error(), Error::MissingRight, "read-only");
        sim.issue(user, Syscall::process_exit, &[0]);
        await_end(&mut sim, program);
        sim.close(sim.root, program.handle);
        sim.close(sim.root, program.ended);
        sim.ticks(4);
        let (used, before) = (sim.totals().1, sim.baseline.1);
        assert_eq!((used[0], used[4]), (before[0], before[4] + 1));
    }
}
