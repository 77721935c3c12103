//! Badges: who calls. A badge belongs to one endpoint, is counted by the handles that carry it, and tells the endpoint when
//! the last of them is closed.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// A minted badge.
#[derive(Debug)]
pub struct Badge {
    /// The number that a call delivers.
    pub value: AtomicU64,
    /// Handles that carry it; 0 while it waits to be told.
    pub refs: AtomicU32,
    /// Next in its endpoint's list of closed badges, as a packed reference. Under the endpoint's lock.
    pub next: AtomicU64,
    /// Pool slot of the process it is counted to.
    pub owner: AtomicU32,
}

impl Badge {
    /// An empty slot.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            value: AtomicU64::new(0),
            refs: AtomicU32::new(0),
            next: AtomicU64::new(0),
            owner: AtomicU32::new(u32::MAX),
        }
    }
}
