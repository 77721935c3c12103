//! What the threads of a program share: locks, conditions, values that are made once, and channels. The shape is that of
//! `std::sync`; counted pointers and atomics are those of `alloc` and `core`.
//!
//! | | if nobody else is there | if it must wait |
//! |---|---|---|
//! | [`Mutex`] | two atomic exchanges, no system call | the thread blocks; who unlocks wakes it: one call each |
//! | [`Condvar`] | a notify that nobody waits for is a lock and an unlock | one call to wait, one to wake, for each waiter |
//! | [`OnceLock`], [`Once`] | made: one load | as for `Mutex` |
//! | [`mpsc`] | a lock and an unlock, and the queue's memory | as for `Condvar` |
//!
//! Nobody spins, and nobody sleeps to look again: the kernel runs other threads until the wake (`park`).
//!
//! **Fairness.** Waiters are woken in the order in which they came, whatever their priority. A woken thread tries again, so
//! one that comes just then may have the lock first, also each time: where that must not be, [`MutexGuard::hand_over`], which `std` has
//! not, gives the lock to the one that has waited longest.
//!
//! **Priority.** A thread that waits here does not lend its priority to the one it waits for, as a caller does to its server: the
//! kernel knows of no owner. Threads begin with their starter's priority; a program that gives them different ones
//! keeps what they share short, or shares it through a server.
//!
//! **No poisoning.** A panic ends the whole program, so no thread ever sees what another one left half done. A thread that keeps a
//! guard for ever, or waits for itself, waits for ever.

mod condvar;
pub mod mpsc;
mod mutex;
mod once;

pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{Mutex, MutexGuard};
pub use once::{Once, OnceLock};

#[cfg(test)]
mod tests;
