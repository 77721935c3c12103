//! Bits, who waits for them, and time.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ipc::abi::info::ThreadState;
use ipc::abi::{Error, Handle, NEVER, NOW, Rights, Syscall, Tag};
use sysroot::syscall::message::{self, NO_WORDS};
use sysroot::{OwnedHandle, handle, syscall, time};

use super::{SOON, await_state, first_thread, joined, on, status};
use crate::spec::Want;
use crate::suite::Suite;
use crate::world::{PRIORITY, World, made, raw, until};

/// Turns of two threads that yield to each other.
const TURNS: u64 = 100;

pub fn run(suite: &mut Suite, cpu: u64) {
    waits(suite, cpu);
    polls(suite);
    is_woken(suite, cpu);
    timers(suite);
    bonds(suite);
    closed(suite, cpu);
    yields(suite);
}

fn notification() -> OwnedHandle {
    OwnedHandle::new(made("a notification", syscall::notification_create()))
}

/// Bits stay until they are taken, all at once.
fn waits(suite: &mut Suite, cpu: u64) {
    let bits = notification();
    let all = u64::MAX;
    for set in [1, 1 << 63, 0] {
        suite.check(
            Syscall::signal,
            format_args!("bits {set:#x}"),
            &[raw(bits.raw()), set, 0, 0, 0, 0],
            Ok(()),
        );
    }
    let wait = |deadline| [raw(bits.raw()), deadline, 0, 0, 0, 0];
    let taken = suite.check(Syscall::wait, "bits that are set", &wait(NEVER), Ok(()));
    suite.equal(
        Syscall::wait,
        "it takes all bits",
        taken.registers[0],
        1 << 63 | 1,
    );
    let soon = time::after(SOON);
    suite.check(Syscall::wait, "soon", &wait(soon), Err(Error::TimedOut));
    suite.holds(Syscall::wait, "the deadline has come", time::now() >= soon);
    let theirs = made("a copy", handle::duplicate(bits.raw(), Rights::SIGNAL));
    let signaller = on(cpu, move || {
        await_state(first_thread(), ThreadState::Waiting);
        syscall::signal(theirs.raw(), all)
    });
    let taken = suite.check(Syscall::wait, "never", &wait(NEVER), Ok(()));
    suite.equal(
        Syscall::wait,
        "it takes what is set",
        taken.registers[0],
        all,
    );
    suite.record(
        Syscall::signal,
        "with a waiter",
        joined(signaller),
        &[Ok(())],
    );
}

/// One signal wakes one waiter, and gives it everything.
fn is_woken(suite: &mut Suite, cpu: u64) {
    let bits = notification();
    let waiter = || {
        let theirs = made("a copy", handle::duplicate(bits.raw(), Rights::WAIT));
        on(cpu, move || syscall::wait(theirs.raw(), NEVER))
    };
    let waiters = [waiter(), waiter()];
    for waiter in &waiters {
        await_state(waiter.handle(), ThreadState::Waiting);
    }
    for set in [6, 9] {
        suite.check(
            Syscall::signal,
            "two waiters",
            &[raw(bits.raw()), set, 0, 0, 0, 0],
            Ok(()),
        );
    }
    let taken = waiters.map(joined);
    let want = [[Ok(6), Ok(9)], [Ok(9), Ok(6)]];
    suite.holds(
        Syscall::signal,
        "each gets one signal",
        want.contains(&taken),
    );
    let waiter = |priority| {
        let theirs = made("a copy", handle::duplicate(bits.raw(), Rights::WAIT));
        let waiter = on(cpu, move || {
            let lowered = syscall::thread_set(Handle::NONE, priority, cpu);
            made("a priority", lowered);
            syscall::wait(theirs.raw(), NEVER)
        });
        await_state(waiter.handle(), ThreadState::Waiting);
        waiter
    };
    let waiters = [waiter(PRIORITY - 1), waiter(PRIORITY)];
    for set in [6, 9] {
        made("a signal", syscall::signal(bits.raw(), set));
    }
    let taken = waiters.map(joined);
    let want = [Ok(9), Ok(6)];
    suite.equal(Syscall::signal, "the first by priority", taken, want);
    let slept = on(cpu, || {
        let soon = time::after(SOON);
        (syscall::sleep(soon), time::now() >= soon)
    });
    suite.equal(Syscall::sleep, "soon", joined(slept), (Ok(()), true));
    let sleep = [time::after(SOON), 0, 0, 0, 0, 0];
    suite.check(Syscall::sleep, "soon, here", &sleep, Ok(()));
    suite.holds(Syscall::sleep, "the time has come", time::now() >= sleep[0]);
}

/// Who asks only for what is there keeps its CPU: a thread of lower priority does not run meanwhile.
fn polls(suite: &mut Suite) {
    static TURNS_BELOW: AtomicU64 = AtomicU64::new(0);
    static OVER: AtomicBool = AtomicBool::new(false);
    OVER.store(false, Ordering::Relaxed);
    let pinned = syscall::thread_set(Handle::NONE, PRIORITY, 0);
    suite.equal(Syscall::thread_set, "the first CPU", pinned, Ok(()));
    let below = on(0, || {
        let lowered = syscall::thread_set(Handle::NONE, PRIORITY - 1, 0);
        while !OVER.load(Ordering::Relaxed) {
            TURNS_BELOW.fetch_add(1, Ordering::Relaxed);
        }
        lowered
    });
    let turns = || TURNS_BELOW.load(Ordering::Relaxed);
    let before = turns();
    let runs = || {
        time::sleep(SOON);
        turns() > before
    };
    suite.holds(Syscall::sleep, "a thread below runs", until(runs));
    let end = OwnedHandle::new(made("an endpoint", syscall::endpoint_create()));
    let bits = notification();
    let wait = || status(syscall::wait(bits.raw(), NOW));
    let receive = || status(message::receive(end.raw(), NOW));
    let call = || status(message::call(end.raw(), Tag::default(), NO_WORDS, NOW));
    let polls: [(Syscall, &dyn Fn() -> Want); 3] = [
        (Syscall::wait, &wait),
        (Syscall::receive, &receive),
        (Syscall::call, &call),
    ];
    for (what, poll) in polls {
        let before = turns();
        let empty = (0..TURNS).all(|_| poll() == Err(Error::TimedOut));
        let after = turns();
        suite.holds(what, "a poll finds nothing", empty);
        suite.equal(what, "a poll keeps the CPU", after, before);
    }
    OVER.store(true, Ordering::Relaxed);
    suite.equal(Syscall::thread_set, "below", joined(below), Ok(()));
}

/// A timer signals once; a new one replaces it, and one that never comes cancels it.
fn timers(suite: &mut Suite) {
    let bits = notification();
    let what = Syscall::timer_set;
    let set = |word, deadline| [raw(bits.raw()), word, deadline, 0, 0, 0];
    let taken = |deadline| syscall::wait(bits.raw(), deadline);
    suite.check(what, "now", &set(1, NOW), Ok(()));
    suite.equal(what, "it signals", taken(NEVER), Ok(1));
    let soon = time::after(SOON);
    suite.check(what, "soon", &set(2, soon), Ok(()));
    suite.equal(what, "it signals at the deadline", taken(NEVER), Ok(2));
    suite.holds(what, "not before it", time::now() >= soon);
    suite.equal(
        what,
        "it signals once",
        taken(time::after(SOON)),
        Err(Error::TimedOut),
    );
    // Where this thread is kept waiting, the old timer has come before it is replaced or cancelled.
    for (name, replacement, want) in [
        ("one that replaces another", NOW, Ok(8)),
        ("never", NEVER, Err(Error::TimedOut)),
    ] {
        let old = time::after(SOON);
        suite.check(what, "one that is not to come", &set(4, old), Ok(()));
        suite.check(what, name, &set(8, replacement), Ok(()));
        let in_time = time::now() < old;
        time::sleep(2 * SOON);
        let got = taken(NOW);
        suite.holds(what, name, got == want || !in_time);
    }
}

/// A thread and a notification have one bond at most.
fn bonds(suite: &mut Suite) {
    let world = World::new();
    let other = notification();
    let what = Syscall::bind;
    let tie = |bits: &OwnedHandle, thread: Handle| [raw(bits.raw()), raw(thread), 0, 0, 0, 0];
    let held = world.held.raw();
    suite.check(
        what,
        "a held thread",
        &tie(&world.notification, held),
        Ok(()),
    );
    let busy = Err(Error::Busy);
    suite.check(
        what,
        "the same again",
        &tie(&world.notification, held),
        busy,
    );
    suite.check(what, "another to the thread", &tie(&other, held), busy);
    let first = first_thread();
    suite.check(
        what,
        "the notification to another",
        &tie(&world.notification, first),
        busy,
    );
    suite.check(
        what,
        "no thread",
        &tie(&world.notification, Handle::NONE),
        Ok(()),
    );
    suite.check(what, "after it was loosened", &tie(&other, held), Ok(()));
    let dead = world.dead_thread.raw();
    suite.check(
        what,
        "a thread that ended",
        &tie(&world.notification, dead),
        Err(Error::WrongState),
    );
    suite.check(
        what,
        "loosening twice",
        &tie(&world.notification, Handle::NONE),
        Ok(()),
    );
}

/// Who waits on a notification that no handle names any more is told so.
fn closed(suite: &mut Suite, cpu: u64) {
    let bits = notification().into_raw();
    let closer = on(cpu, move || {
        await_state(first_thread(), ThreadState::Waiting);
        status(syscall::handle_close(bits))
    });
    let wait = [raw(bits), NEVER, 0, 0, 0, 0];
    suite.check(
        Syscall::wait,
        "its last handle is closed",
        &wait,
        Err(Error::BadHandle),
    );
    suite.record(
        Syscall::handle_close,
        "one that is waited on",
        joined(closer),
        &[Ok(())],
    );
}

/// Another thread of the same CPU and priority runs before who yields goes on. A tick that ends a slice may come between, but seldom.
fn yields(suite: &mut Suite) {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    static ANSWERED: AtomicU64 = AtomicU64::new(0);
    static OVER: AtomicBool = AtomicBool::new(false);
    OVER.store(false, Ordering::Relaxed);
    let pinned = syscall::thread_set(Handle::NONE, PRIORITY, 0);
    suite.equal(Syscall::thread_set, "the first CPU", pinned, Ok(()));
    let other = on(0, || {
        while !OVER.load(Ordering::Relaxed) {
            ANSWERED.store(ASKED.load(Ordering::Relaxed), Ordering::Relaxed);
            made("a turn", syscall::yield_now());
        }
    });
    let answered = |turn: &u64| {
        ASKED.store(*turn, Ordering::Relaxed);
        made("a turn", syscall::yield_now());
        ANSWERED.load(Ordering::Relaxed) == *turn
    };
    let mostly = || (1..=TURNS).filter(answered).count() as u64 > TURNS / 2;
    suite.holds(Syscall::yield_now, "the other runs", until(mostly));
    suite.check(Syscall::yield_now, "to another", &[0; 6], Ok(()));
    OVER.store(true, Ordering::Relaxed);
    joined(other);
}
