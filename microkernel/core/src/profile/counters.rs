//! What is counted on each CPU: every sample taken, and everything lost or odd, by name.
//!
//! Written by one CPU, by one context at a time, and read by anyone at any time: relaxed additions, which need no order
//! because nothing is decided by them.

use super::chain::Findings;
use crate::apic::timer::DueSample;
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
    late: AtomicU64,
    cost: AtomicU64,
    asked: AtomicU64,
    delay: AtomicU64,
    delay_max: AtomicU64,
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
    /// An NMI that was asked for came after its source was disarmed.
    pub(super) fn late(&self) {
        self.late.fetch_add(1, Relaxed);
    }
    /// The neighbour's sample is asked for.
    pub(super) fn asked(&self, due: DueSample) {
        self.asked.fetch_add(1, Relaxed);
        self.missed(due.missed);
        self.delay.fetch_add(due.late, Relaxed);
        self.delay_max.fetch_max(due.late, Relaxed);
    }
    /// A run begins: what is the most of a run begins anew.
    pub(super) fn run_begins(&self) {
        self.delay_max.store(0, Relaxed);
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
    /// The counters now. No source comes too fast yet.
    pub(super) fn read(&self) -> SampleCounters {
        SampleCounters {
            taken: self.taken.load(Relaxed),
            missed: self.missed.load(Relaxed),
            truncated: self.truncated.load(Relaxed),
            cut: self.cut.load(Relaxed),
            unmapped: self.unmapped.load(Relaxed),
            changed: self.changed.load(Relaxed),
            late: self.late.load(Relaxed),
            throttled: 0,
            cost: self.cost.load(Relaxed),
            asked: self.asked.load(Relaxed),
            delay: self.delay.load(Relaxed),
            delay_max: self.delay_max.load(Relaxed),
        }
    }
}
