//! Badges: who calls. A badge belongs to one endpoint, is counted by the handles that carry it, and tells the endpoint when
//! the last of them is closed.

use super::endpoint::Endpoint;
use crate::base::pool::Ref;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A minted badge.
#[derive(Debug)]
pub struct Badge {
    /// The number that a call delivers.
    pub value: AtomicU64,
    /// Its endpoint, as a packed reference. The badge holds no count of it: the handles that carry the badge do.
    pub endpoint: AtomicU64,
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
            endpoint: AtomicU64::new(0),
            refs: AtomicU32::new(0),
            next: AtomicU64::new(0),
            owner: AtomicU32::new(u32::MAX),
        }
    }
    /// Its endpoint.
    #[must_use]
    pub fn endpoint(&self) -> Option<Ref<Endpoint>> {
        Ref::unpack(self.endpoint.load(Ordering::Relaxed))
    }
}
