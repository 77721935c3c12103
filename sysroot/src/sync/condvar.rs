//! Waiting for what another thread does to a value behind a mutex.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::{Mutex, MutexGuard};
use crate::park::{self, Reason, Waiter};

/// Those who wait, oldest first, each with a ticket to find itself by.
#[derive(Debug)]
struct Queue {
    waiters: VecDeque<(u64, Waiter)>,
    next: u64,
}

/// A condition that threads wait for. A notify wakes who waits longest, and a wait ends for no other reason than a notify or its
/// deadline. Waiting may take memory for the queue.
#[derive(Debug)]
pub struct Condvar(Mutex<Queue>);

/// Whether a wait ended because its time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the time was over.
    #[must_use]
    pub const fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// A condition that nobody waits for.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Queue {
            waiters: VecDeque::new(),
            next: 0,
        }))
    }

    /// Unlocks the mutex and waits for a notify, in one step; then locks it again.
    pub fn wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let mutex = guard.mutex();
        self.join();
        drop(guard);
        park::wait(Reason::Event);
        mutex.lock()
    }

    /// Waits for notifies until the condition is false.
    pub fn wait_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while condition(&mut guard) {
            guard = self.wait(guard);
        }
        guard
    }

    /// As `wait`, but not longer than `timeout`.
    pub fn wait_timeout<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        self.wait_until(guard, park::deadline(timeout))
    }

    /// As `wait_while`, but not longer than `timeout`. If the time was over, the condition was still true.
    pub fn wait_timeout_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        let deadline = park::deadline(timeout);
        let mut result = WaitTimeoutResult(false);
        while condition(&mut guard) {
            if result.timed_out() {
                return (guard, result);
            }
            (guard, result) = self.wait_until(guard, deadline);
        }
        (guard, WaitTimeoutResult(false))
    }

    fn wait_until<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: u64,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        let mutex = guard.mutex();
        let ticket = self.join();
        drop(guard);
        let woken = park::wait_until(Reason::Event, deadline) || !self.leave(ticket);
        (mutex.lock(), WaitTimeoutResult(!woken))
    }

    /// Wakes who waits longest, if anybody does.
    pub fn notify_one(&self) {
        let oldest = self.0.lock().waiters.pop_front();
        if let Some((_, waiter)) = oldest {
            waiter.wake(Reason::Event);
        }
    }

    /// Wakes all who wait now.
    pub fn notify_all(&self) {
        let waiters = core::mem::take(&mut self.0.lock().waiters);
        for (_, waiter) in waiters {
            waiter.wake(Reason::Event);
        }
    }

    fn join(&self) -> u64 {
        let mut queue = self.0.lock();
        let ticket = queue.next;
        queue.next += 1;
        queue.waiters.push_back((ticket, Waiter::current()));
        ticket
    }

    /// Takes the calling thread out of the queue. If it was taken out already it has been notified: its wake is waited for, and the
    /// answer is false.
    fn leave(&self, ticket: u64) -> bool {
        let mut queue = self.0.lock();
        let place = queue.waiters.iter().position(|(other, _)| *other == ticket);
        let Some(place) = place else {
            drop(queue);
            park::wait(Reason::Event);
            return false;
        };
        queue.waiters.remove(place);
        true
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notify_that_meets_a_timeout_is_the_waiters() {
        let condition = Condvar::new();
        let ticket = condition.join();
        // The time is over; before the thread takes itself out, it is notified.
        condition.notify_one();
        assert!(!condition.leave(ticket));
        assert!(!park::wait_until(Reason::Event, 0), "the wake is left over");
        let ticket = condition.join();
        assert!(condition.leave(ticket));
        condition.notify_one();
        assert!(
            !park::wait_until(Reason::Event, 0),
            "who had left was woken"
        );
    }
}
