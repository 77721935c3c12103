//! Two threads of one process: one wakes the other, or they yield to each other.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ipc::abi::{Handle, NEVER, Syscall};
use sysroot::syscall;
use sysroot::thread::{self, JoinHandle};

use super::counter::Counter;
use super::failure::{Effect, Failure, ensure, kernel};
use super::rounds::{Rounds, WARM_UP};
use crate::figure::Figure;

/// Rounds of each.
const ROUNDS: usize = 200;
/// Priority of who signals; its waiter keeps the higher one of this program.
const LOW: u64 = 9;

/// What the two threads share.
#[derive(Default)]
struct Shared {
    /// Times that the other thread had its turn.
    turns: AtomicU64,
    /// The other thread is to end.
    over: AtomicBool,
}

impl Shared {
    /// The other thread had a turn; whether there is to be another.
    fn turn(&self) -> bool {
        self.turns.fetch_add(1, Ordering::Relaxed);
        !self.over.load(Ordering::Relaxed)
    }
}

/// Measures them. Each pair is of threads made for it: a thread cannot take back a priority that it gave up.
pub fn measure(counter: Counter) -> Result<(), Failure> {
    for (figure, pair) in [
        (Figure::SignalWake, signal_wake as fn(Counter) -> _),
        (Figure::Yield, yield_),
    ] {
        let rounds: JoinHandle<Result<Rounds, Failure>> =
            thread::spawn(move || pair(counter)).map_err(kernel(Syscall::thread_create))?;
        joined(rounds)??.print(figure);
    }
    Ok(())
}

/// What a thread returned.
pub fn joined<T>(thread: JoinHandle<T>) -> Result<T, Failure> {
    thread.join().map_err(|_| Failure::NotDone(Effect::Joined))
}

/// One thread signals, and another of higher priority, which waits, runs at once and waits again.
fn signal_wake(counter: Counter) -> Result<Rounds, Failure> {
    let notification =
        syscall::notification_create().map_err(kernel(Syscall::notification_create))?;
    let shared = Arc::new(Shared::default());
    let theirs = Arc::clone(&shared);
    let waiter =
        thread::spawn(move || while syscall::wait(notification, NEVER).is_ok() && theirs.turn() {});
    let waiter = waiter.map_err(kernel(Syscall::thread_create))?;
    // From here on the waiter is above this thread.
    syscall::thread_set(Handle::NONE, LOW, u64::MAX).map_err(kernel(Syscall::thread_set))?;
    let signal = || syscall::signal(notification, 1).map_err(kernel(Syscall::signal));
    let rounds = turns(counter, &shared, signal)?;
    shared.over.store(true, Ordering::Relaxed);
    signal()?;
    joined(waiter)?;
    Ok(rounds)
}

/// Two threads of the same priority yield to each other.
fn yield_(counter: Counter) -> Result<Rounds, Failure> {
    let shared = Arc::new(Shared::default());
    let theirs = Arc::clone(&shared);
    let other = thread::spawn(move || while syscall::yield_now().is_ok() && theirs.turn() {});
    let other = other.map_err(kernel(Syscall::thread_create))?;
    let give_way = || syscall::yield_now().map_err(kernel(Syscall::yield_now));
    let rounds = turns(counter, &shared, give_way)?;
    shared.over.store(true, Ordering::Relaxed);
    joined(other)?;
    Ok(rounds)
}

/// Measures `body`, in which the other thread must have one turn each time.
fn turns(
    counter: Counter,
    shared: &Shared,
    body: impl Fn() -> Result<(), Failure>,
) -> Result<Rounds, Failure> {
    // Until the other thread takes its turns.
    for _ in 0..WARM_UP {
        body()?;
    }
    Rounds::collect(ROUNDS, || {
        let before = shared.turns.load(Ordering::Relaxed);
        let (count, result) = counter.count(&body);
        result?;
        let turns = shared.turns.load(Ordering::Relaxed) - before;
        ensure(turns == 1, Effect::OneTurn)?;
        Ok(count)
    })
}
