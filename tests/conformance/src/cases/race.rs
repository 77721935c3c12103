//! Two threads at the same object at the same time. Which of them comes first is open; that each gets an answer that it can have, and
//! that nothing is lost, is not.

use core::sync::atomic::{AtomicU64, Ordering};

use ipc::abi::{Error, Handle, NEVER, Rights, Syscall, Tag};
use sysroot::syscall::message::{self, NO_WORDS};
use sysroot::thread::JoinHandle;
use sysroot::{OwnedHandle, handle, syscall};

use super::{joined, on, status};
use crate::spec::Want;
use crate::suite::Suite;
use crate::world::{SCRATCH, World, held_thread, made, process};

/// Rounds of each race.
const ROUNDS: u64 = 40;
/// Pages of a mapping that takes several steps.
const PAGES: u64 = 200;

/// Where two threads meet: each round begins when both are there.
static ROUND: AtomicU64 = AtomicU64::new(0);

pub fn run(suite: &mut Suite, cpu: u64) {
    closes(suite, cpu);
    kills(suite, cpu);
    starts(suite, cpu);
    maps(suite, cpu);
}

/// Begins a round, for a rival who waits for it.
fn begin(round: u64) {
    ROUND.store(round, Ordering::Release);
}

/// Waits for a round.
fn await_round(round: u64) {
    while ROUND.load(Ordering::Acquire) != round {
        made("a turn", syscall::yield_now());
    }
}

/// A thread on a CPU that does something when its round begins.
fn rival<T: Send + 'static>(
    cpu: u64,
    round: u64,
    act: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    begin(0);
    on(cpu, move || {
        await_round(round);
        act()
    })
}

/// A handle is used and closed: it is there, or it is not.
fn closes(suite: &mut Suite, cpu: u64) {
    let bits = OwnedHandle::new(made("a notification", syscall::notification_create()));
    let allowed: [Want; 2] = [Ok(()), Err(Error::BadHandle)];
    for round in 1..=ROUNDS {
        let copy = made(
            "a copy",
            handle::duplicate(bits.raw(), Rights::SIGNAL | Rights::DUPLICATE),
        );
        let copy = copy.into_raw();
        let closer = rival(cpu, round, move || syscall::handle_close(copy));
        begin(round);
        let signalled = syscall::signal(copy, 1);
        let copied = syscall::handle_duplicate(copy, Rights::SIGNAL).map(OwnedHandle::new);
        suite.record(
            Syscall::signal,
            "a handle that is being closed",
            signalled,
            &allowed,
        );
        suite.record(
            Syscall::handle_duplicate,
            "a handle that is being closed",
            status(copied),
            &allowed,
        );
        suite.record(
            Syscall::handle_close,
            "a handle that is in use",
            joined(closer),
            &[Ok(())],
        );
    }
}

/// A process is killed that holds the only end at which a call can be received, or its answer: the caller hears.
fn kills(suite: &mut Suite, cpu: u64) {
    let notification = OwnedHandle::new(made("a notification", syscall::notification_create()));
    let gone = Err(Error::PeerDied);
    for round in 1..=ROUNDS / 4 {
        let child = process(16, notification.raw(), 1);
        let end = made("an endpoint", syscall::endpoint_create());
        let calling = made("a copy", handle::duplicate(end, Rights::CALL));
        made(
            "a gift",
            syscall::handle_give(child.raw(), end, Rights::RECEIVE),
        );
        let killer = rival(cpu, round, move || syscall::process_kill(child.raw(), 0));
        begin(round);
        let called = status(message::call(
            calling.raw(),
            Tag::default(),
            NO_WORDS,
            NEVER,
        ));
        suite.record(
            Syscall::call,
            "a process that is being killed",
            called,
            &[gone],
        );
        suite.record(
            Syscall::process_kill,
            "a process that is called",
            joined(killer),
            &[Ok(())],
        );
        made("an end", syscall::wait(notification.raw(), NEVER));
    }
}

/// Of two who start a thread, one does.
fn starts(suite: &mut Suite, cpu: u64) {
    let notification = OwnedHandle::new(made("a notification", syscall::notification_create()));
    let memory = OwnedHandle::new(made("memory", syscall::memory_create(Handle::NONE, 1, 0)));
    for round in 1..=ROUNDS / 4 {
        let child = process(16, notification.raw(), 1);
        let thread = held_thread(&child, &memory);
        let named = thread.raw();
        let other = rival(cpu, round, move || syscall::thread_start(named));
        begin(round);
        let mine = syscall::thread_start(named);
        let theirs = joined(other);
        let one = [mine, theirs]
            .iter()
            .filter(|started| started.is_ok())
            .count();
        suite.equal(Syscall::thread_start, "two at once: one starts it", one, 1);
        let allowed = [Ok(()), Err(Error::WrongState)];
        suite.record(Syscall::thread_start, "two at once", mine, &allowed);
        suite.record(
            Syscall::thread_start,
            "two at once, the other",
            theirs,
            &allowed,
        );
        made("an end", syscall::wait(notification.raw(), NEVER));
    }
}

/// Two at the same mapping. Of two who map, or unmap, the same, one does; who maps or changes what another unmaps finds it busy, or comes
/// first, or too late.
fn maps(suite: &mut Suite, cpu: u64) {
    let world = World::new();
    let memory = OwnedHandle::new(made(
        "memory",
        syscall::memory_create(Handle::NONE, PAGES, 0),
    ));
    let (child, pages) = (world.child.raw(), memory.raw());
    let map = move || {
        // SAFETY: the process is not this one.
        unsafe { syscall::map(child, pages, SCRATCH, 0, PAGES, Rights::READ) }
    };
    let unmap = move || {
        // SAFETY: as above.
        unsafe { syscall::unmap(child, SCRATCH, PAGES) }
    };
    let protect = move || {
        // SAFETY: as above.
        unsafe { syscall::protect(child, SCRATCH, PAGES, Rights::WRITE) }
    };
    let (done, gone, busy) = (Ok(()), Err(Error::NotMapped), Err(Error::Busy));
    for round in (1..=ROUNDS).step_by(4) {
        let both = meet(cpu, round, map, map);
        for answer in both {
            let allowed = [done, Err(Error::Overlap)];
            suite.record(Syscall::map, "two who map", answer, &allowed);
        }
        suite.equal(Syscall::map, "one of two maps", successes(both), 1);
        let both = meet(cpu, round + 1, unmap, unmap);
        for answer in both {
            suite.record(Syscall::unmap, "two who unmap", answer, &[done, gone]);
        }
        suite.equal(Syscall::unmap, "one of two unmaps", successes(both), 1);
        let [mapped, unmapped] = meet(cpu, round + 2, map, unmap);
        suite.record(Syscall::map, "while another unmaps", mapped, &[done, busy]);
        let allowed = [done, gone];
        suite.record(Syscall::unmap, "while another maps", unmapped, &allowed);
        // Where both succeeded, either may have been the last.
        let rest: &[Want] = match (mapped, unmapped) {
            (Ok(()), Ok(())) => &[done, gone],
            (Ok(()), Err(_)) => &[done],
            (Err(_), _) => &[gone],
        };
        suite.record(Syscall::unmap, "what is left of it", unmap(), rest);
        made("a mapping", map());
        let [changed, unmapped] = meet(cpu, round + 3, protect, unmap);
        let allowed = [done, gone, busy];
        suite.record(Syscall::protect, "while another unmaps", changed, &allowed);
        suite.record(
            Syscall::unmap,
            "while another changes it",
            unmapped,
            &[done],
        );
        suite.record(Syscall::unmap, "nothing is left", unmap(), &[gone]);
    }
}

/// Two threads do something at the same time.
fn meet(
    cpu: u64,
    round: u64,
    mine: impl FnOnce() -> Want,
    other: impl FnOnce() -> Want + Send + 'static,
) -> [Want; 2] {
    let other = rival(cpu, round, other);
    begin(round);
    [mine(), joined(other)]
}

fn successes(answers: [Want; 2]) -> usize {
    answers.iter().filter(|answer| answer.is_ok()).count()
}
