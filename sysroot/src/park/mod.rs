//! Where a thread waits for another one of the same program, and how it is woken. All that blocks in [`crate::sync`] and
//! [`crate::thread`] blocks here.
//!
//! **A wake is neither lost nor left over.** A thread that is going to wait first says so in some list or word; who takes it
//! out of there wakes it, exactly once, and nothing else lets it go on. So a [`Waiter`] that was just taken is a thread that
//! waits or is about to, and its name is good. A thread that gives up at a deadline takes itself out, or finds that it was
//! taken and waits for the wake that is on its way.
//!
//! A thread that has put itself into the list of an event may still have to wait for a lock. The two have a [`Reason`] of
//! their own, and a wake for one never ends a wait for the other.

#[cfg(test)]
mod host;
#[cfg(target_os = "none")]
mod notification;

#[cfg(test)]
pub use host::{Waiter, wait};
#[cfg(all(test, not(loom)))]
pub use host::{deadline, wait_until};
#[cfg(target_os = "none")]
pub use notification::{PARKER_OFFSET, Waiter, deadline, prepare, wait, wait_until};

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Reason {
    /// A lock that another thread has.
    Lock = 1,
    /// Another thread's work, or its end.
    #[cfg_attr(loom, expect(dead_code, reason = "the lock alone is tried under loom"))]
    Event = 2,
}
