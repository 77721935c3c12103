//! What all threads have done so far, for who tells it while they go on.

use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of all threads. Each is exact by itself; two that are read one after the other may differ by what happened between.
#[derive(Debug, Default)]
pub struct Rates {
    sent: AtomicU64,
    back: AtomicU64,
}

/// The counts at one instant, or of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that came back, each once.
    pub back: u64,
}

impl Rates {
    /// Adds what a thread did.
    pub fn add(&self, count: Count) {
        self.sent.fetch_add(count.sent, Ordering::Relaxed);
        self.back.fetch_add(count.back, Ordering::Relaxed);
    }

    /// The counts so far.
    pub fn now(&self) -> Count {
        Count {
            sent: self.sent.load(Ordering::Relaxed),
            back: self.back.load(Ordering::Relaxed),
        }
    }
}

impl Sub for Count {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            sent: self.sent - before.sent,
            back: self.back - before.back,
        }
    }
}
