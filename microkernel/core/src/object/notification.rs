//! Notifications: a word of bits. Setting bits never waits; taking them can. Interrupts, timers and signals are bits.

use super::queue::PriorityQueue;
use super::thread::ThreadId;
use crate::base::lock::{Lock, rank};
use core::sync::atomic::AtomicU32;

/// What a notification's lock guards.
#[derive(Debug)]
pub struct Bits {
    /// Bits set and not taken.
    pub pending: u64,
    /// Threads in `wait`.
    pub waiters: PriorityQueue,
    /// Thread that takes the bits in its receive.
    pub bound: Option<ThreadId>,
    /// Bits its timer sets.
    pub timer_bits: u64,
    /// CPU whose timer queue holds its timer.
    pub timer_cpu: Option<u8>,
}

/// A notification.
#[derive(Debug)]
pub struct Notification {
    /// Its bits.
    pub bits: Lock<Bits, { rank::NOTIFICATION }>,
    /// Handles and kernel objects that name it.
    pub refs: AtomicU32,
    /// Pool slot of the process it is counted to.
    pub owner: AtomicU32,
}

impl Notification {
    /// An empty slot.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            bits: Lock::new(Bits {
                pending: 0,
                waiters: PriorityQueue::new(),
                bound: None,
                timer_bits: 0,
                timer_cpu: None,
            }),
            refs: AtomicU32::new(0),
            owner: AtomicU32::new(u32::MAX),
        }
    }
}
