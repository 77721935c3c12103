//! Two threads at the same object at the same time. Which of them comes first is open; that each gets an answer that it can have, and
//! that nothing is lost, is not.

extern crate alloc;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use ipc::abi::info::ThreadState;
use ipc::abi::startup::names;
use ipc::abi::{Error, Handle, NEVER, Rights, Syscall, Tag};
use sysroot::syscall::message::{self, NO_WORDS};
use sysroot::thread::JoinHandle;
use sysroot::{OwnedHandle, handle, syscall, time};

use super::{await_state, joined, on, status};
use crate::spec::Want;
use crate::suite::Suite;
use crate::world::{
    PATIENCE, PRIORITY, QUOTA, QUOTA_MIN, SCRATCH, World, given, held_thread, made, process,
};

/// Rounds of each race.
const ROUNDS: u64 = 40;
/// Pages of a mapping that takes several steps.
const PAGES: u64 = 200;
/// Device memory that no machine has.
const FAR: u64 = 1 << 43;
/// As many pages of it as the tables of a process hold: they take many steps to map.
const FAR_PAGES: u64 = 48 * 512;

/// Where two threads meet: each round begins when both are there.
static ROUND: AtomicU64 = AtomicU64::new(0);

pub fn run(suite: &mut Suite, cpu: u64) {
    closes(suite, cpu);
    kills(suite, cpu);
    starts(suite, cpu);
    maps(suite, cpu);
    finds_busy(suite, cpu);
}

/// Begins a round, for a rival who waits for it.
fn begin(round: u64) {
    ROUND.store(round, Ordering::Release);
}

/// Waits for a round. Awake: who sleeps is woken only after the other has made its call, and would always come second.
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
        let child = process(QUOTA_MIN, notification.raw(), 1);
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
        let child = process(QUOTA_MIN, notification.raw(), 1);
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

/// A mapping that another thread is in the middle of is busy. Who comes into the middle of whom is not left to chance: the others are on
/// one CPU, below this thread, which wakes when one of them must be half done, and says by priority who goes on. Again, if it was late; how
/// long a call takes is measured each time, as what once took long may not the next time.
fn finds_busy(suite: &mut Suite, cpu: u64) {
    let ended = OwnedHandle::new(made("a notification", syscall::notification_create()));
    let child = process(QUOTA, ended.raw(), 1);
    let system = given(names::SYSTEM);
    let pages = syscall::memory_physical(system, FAR, FAR_PAGES);
    let pages = OwnedHandle::new(made("device memory", pages));
    let (there, device) = (child.raw(), pages.raw());
    let map = move || {
        // SAFETY: the process is not this one.
        unsafe { syscall::map(there, device, SCRATCH, 0, FAR_PAGES, Rights::READ) }
    };
    let unmap = move || {
        // SAFETY: as above.
        unsafe { syscall::unmap(there, SCRATCH, FAR_PAGES) }
    };
    let protect = move |rights| {
        // SAFETY: as above.
        unsafe { syscall::protect(there, SCRATCH, FAR_PAGES, rights) }
    };
    let (done, gone, busy) = (Ok(()), Err(Error::NotMapped), Err(Error::Busy));
    let [mapped, unmapped] = until_busy(|| {
        let to_map = time_of(|| made("a mapping", map()));
        let to_unmap = time_of(|| made("the end of a mapping", unmap()));
        let mapping = Held::new(cpu, MIDDLE, map);
        let unmapping = Held::new(cpu, HIGHER, unmap);
        mapping.go();
        time::sleep(to_map / 2);
        unmapping.go();
        time::sleep(to_unmap / 4);
        unmapping.set(cpu, LOWER);
        let answers = [mapping.joined(), unmapping.joined()];
        // Whether something is left of it is open.
        let _ = unmap();
        answers
    });
    suite.record(Syscall::map, "while another unmaps it", mapped, &[busy]);
    let case = "while another is half done mapping";
    suite.record(Syscall::unmap, case, unmapped, &[done, gone]);
    made("a mapping", map());
    let [first, second] = until_busy(|| {
        let to_protect = time_of(|| made("a change", protect(Rights::WRITE)));
        let changing = Held::new(cpu, LOWER, move || protect(Rights::READ));
        changing.go();
        time::sleep(to_protect / 2);
        let second = protect(Rights::WRITE);
        [second, changing.joined()]
    });
    let case = "while another is half done changing it";
    suite.record(Syscall::protect, case, first, &[busy]);
    let case = "while another would change it too";
    suite.record(Syscall::protect, case, second, &[done]);
    made("an end", syscall::process_kill(there, 0));
    made("an end", syscall::wait(ended.raw(), NEVER));
}

/// Priorities below that of this thread.
const HIGHER: u64 = PRIORITY - 1;
const MIDDLE: u64 = PRIORITY - 2;
const LOWER: u64 = PRIORITY - 3;

/// A thread that is there, and makes its call when it is told to.
struct Held {
    thread: JoinHandle<Want>,
    gate: Arc<OwnedHandle>,
}

impl Held {
    fn new(cpu: u64, priority: u64, act: impl FnOnce() -> Want + Send + 'static) -> Self {
        let gate = Arc::new(OwnedHandle::new(made(
            "a notification",
            syscall::notification_create(),
        )));
        let opened = Arc::clone(&gate);
        let thread = on(cpu, move || {
            made("a wait", syscall::wait(opened.raw(), NEVER));
            act()
        });
        await_state(thread.handle(), ThreadState::Waiting);
        let held = Self { thread, gate };
        held.set(cpu, priority);
        held
    }

    fn go(&self) {
        made("a signal", syscall::signal(self.gate.raw(), 1));
    }

    fn set(&self, cpu: u64, priority: u64) {
        let set = syscall::thread_set(self.thread.handle(), priority, cpu);
        made("a priority", set);
    }

    fn joined(self) -> Want {
        joined(self.thread)
    }
}

/// Nanoseconds that something takes.
fn time_of(act: impl FnOnce()) -> u64 {
    let start = time::now();
    act();
    time::now() - start
}

/// Does something until the first of its two answers is that the object is busy.
fn until_busy(mut attempt: impl FnMut() -> [Want; 2]) -> [Want; 2] {
    let deadline = time::after(PATIENCE);
    loop {
        let answers = attempt();
        if answers[0] == Err(Error::Busy) || time::now() > deadline {
            return answers;
        }
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
