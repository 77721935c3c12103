//! What is counted on each CPU: every sample taken, and everything lost or odd, by name.
//!
//! Written by one CPU, by one context at a time, and read by anyone at any time: relaxed additions, which need no order
//! because nothing is decided by them.

use super::chain::Findings;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use ipc::abi::profile::SampleCounters;

/// One CPU's counters since boot.
#[derive(Debug, Default)]
pub(super) struct Counters {
    taken: AtomicU64,
    missed: AtomicU64,
    truncated: AtomicU64,
    cut: AtomicU64,
    unmapped: AtomicU64,
    changed: AtomicU64,
    cost: AtomicU64,
}

impl Counters {
    /// A sample is being taken. Counted before the ring is touched, and apart from it.
    pub(super) fn taken(&self) {
        self.taken.fetch_add(1, Relaxed);
    }
    /// So many samples were due before this one, and none was taken.
    pub(super) fn missed(&self, samples: u64) {
        self.missed.fetch_add(samples, Relaxed);
    }
    /// What was found on the way, and how many TSC ticks it took.
    pub(super) fn found(&self, findings: Findings, ticks: u64) {
        let Findings {
            truncated,
            cut,
            unmapped,
            changed,
            incomplete: _,
        } = findings;
        for (counter, found) in [
            (&self.truncated, truncated),
            (&self.cut, cut),
            (&self.unmapped, unmapped),
            (&self.changed, changed),
        ] {
            counter.fetch_add(u64::from(found), Relaxed);
        }
        self.cost.fetch_add(ticks, Relaxed);
    }
    /// The counters now. No source comes late or too fast yet: the tick is neither.
    pub(super) fn read(&self) -> SampleCounters {
        SampleCounters {
            taken: self.taken.load(Relaxed),
            missed: self.missed.load(Relaxed),
            truncated: self.truncated.load(Relaxed),
            cut: self.cut.load(Relaxed),
            unmapped: self.unmapped.load(Relaxed),
            changed: self.changed.load(Relaxed),
            late: 0,
            throttled: 0,
            cost: self.cost.load(Relaxed),
        }
    }
}
