//! What is counted on each CPU: every sample taken, and everything lost or odd, by name.
//!
//! Written by one CPU and read by anyone at any time, in no order, since nothing is decided by them. What is counted with a sample is
//! written by one context at a time; the rest, where a tick and an NMI may meet, by additions that are atomic.

use super::findings::Findings;
use crate::apic::timer::DueSample;
use crate::sched::load::add;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use ipc::abi::profile::{SampleCounters, flags};

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
    throttled: AtomicU64,
    cost: AtomicU64,
    asked: AtomicU64,
    delay: AtomicU64,
    delay_max: AtomicU64,
}

impl Counters {
    /// A sample is being taken. Counted before the ring is touched, and apart from it.
    #[inline]
    pub(super) fn taken(&self) {
        add(&self.taken, 1);
    }
    /// So many samples were due before this one, and none was taken.
    #[inline]
    pub(super) fn missed(&self, samples: u64) {
        self.missed.fetch_add(samples, Relaxed);
    }
    /// An NMI that was asked for came after its source was disarmed.
    pub(super) fn late(&self) {
        self.late.fetch_add(1, Relaxed);
    }
    /// A sample that was due was left out or put off, to leave a CPU time for anything else.
    pub(super) fn throttled(&self) {
        self.throttled.fetch_add(1, Relaxed);
    }
    /// The neighbour's sample is asked for.
    #[inline]
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
    /// It took so many TSC ticks.
    #[inline]
    pub(super) fn took(&self, ticks: u64) {
        add(&self.cost, ticks);
    }
    /// What was found on the way.
    pub(super) fn found(&self, findings: Findings) {
        let Findings {
            flags,
            cut,
            unmapped,
            ..
        } = findings;
        if flags & (flags::TRUNCATED | flags::CUT | flags::CHANGED) == 0 {
            return;
        }
        for (counter, found) in [
            (&self.truncated, flags & flags::TRUNCATED != 0),
            (&self.cut, cut),
            (&self.unmapped, unmapped),
            (&self.changed, flags & flags::CHANGED != 0),
        ] {
            add(counter, u64::from(found));
        }
    }
    /// The counters now.
    pub(super) fn read(&self) -> SampleCounters {
        SampleCounters {
            taken: self.taken.load(Relaxed),
            missed: self.missed.load(Relaxed),
            truncated: self.truncated.load(Relaxed),
            cut: self.cut.load(Relaxed),
            unmapped: self.unmapped.load(Relaxed),
            changed: self.changed.load(Relaxed),
            late: self.late.load(Relaxed),
            throttled: self.throttled.load(Relaxed),
            cost: self.cost.load(Relaxed),
            asked: self.asked.load(Relaxed),
            delay: self.delay.load(Relaxed),
            delay_max: self.delay_max.load(Relaxed),
        }
    }
}
