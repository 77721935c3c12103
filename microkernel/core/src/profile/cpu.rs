//! What the driver keeps for each CPU: its ring, what takes its samples, and the NMI that it is about to get.

use super::counters::Counters;
use super::expected::{Expected, Purpose};
use super::late::Late;
use super::machine::Machine;
use super::own::{Intervals, OwnCounter};
use super::record::usual_header;
use super::source::Trigger;
use crate::base::addr::Tsc;
use crate::base::cpu::CpuId;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use ipc::abi::monitor::MonitorInfo;
use sample_ring::Writer;
use spin::Once;

/// What the driver keeps for a CPU, made at boot and kept for the life of the system.
#[derive(Debug)]
pub struct CpuState {
    pub(super) id: CpuId,
    /// The header of a usual record of it, without callers.
    pub(super) usual: u64,
    pub(super) ring: Writer<'static>,
    /// What takes this CPU's samples, or [`DISARMED`]. Set before this CPU's source starts and cleared after it stopped, by this
    /// CPU. So only one of its tick and its NMI writes to the ring, whatever is still on its way from the run before.
    pub(super) armed: AtomicU8,
    pub(super) expected: Expected,
    /// What the proof found out about its performance monitor.
    pub(super) monitor: Once<MonitorInfo>,
    /// Its counter, if that works.
    pub(super) own: Once<OwnCounter>,
    pub(super) intervals: Intervals,
    pub(super) late: Late,
    pub(super) counters: Counters,
    /// TSC until which this CPU has itself again, after a sample.
    pub(super) rests_until: AtomicU64,
    /// Records written when `profd` was last woken.
    pub(super) announced: AtomicU64,
}

/// TSC ticks that no rest takes, some milliseconds: a CPU whose counter is so far ahead is not waited for.
const REST_MAX: u64 = 1 << 24;

/// No [`Trigger`].
pub(super) const DISARMED: u8 = 0;

impl CpuState {
    /// The state of the CPU with this number and this ring.
    #[must_use]
    pub fn new(id: CpuId, ring: Writer<'static>) -> Self {
        Self {
            id,
            usual: usual_header(id),
            ring,
            armed: AtomicU8::new(DISARMED),
            expected: Expected::default(),
            monitor: Once::new(),
            own: Once::new(),
            intervals: Intervals::new(id),
            late: Late::default(),
            counters: Counters::default(),
            rests_until: AtomicU64::new(0),
            announced: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn is_armed(&self, trigger: Trigger) -> bool {
        self.armed.load(Ordering::Relaxed) == trigger as u8
    }

    /// Whether this CPU has done nothing but take a sample for too long to take another: it gets as long for itself as that took.
    pub(super) fn rests(&self, now: Tsc) -> bool {
        let rest = self.rests_until.load(Ordering::Relaxed);
        (1..REST_MAX).contains(&rest.wrapping_sub(now.0))
    }

    /// The tick's look at its counter, if that takes its samples.
    pub(super) fn look<M: Machine>(&self, machine: &M) {
        if self.is_armed(Trigger::Counter)
            && let Some(own) = self.own.get()
        {
            let missed = own.look(machine.monitor(), &self.intervals, &self.late);
            self.late.tick();
            self.counters.missed(missed);
        }
    }

    /// Whether an NMI was announced, which may be one with an overflow. Seldom: no sample is announced to a CPU that its counter samples.
    #[cold]
    #[inline(never)]
    pub(super) fn is_announced(&self, overflowed: bool) -> bool {
        let Some(purpose) = self.expected.claim() else {
            return false;
        };
        // Of a run that has ended.
        if purpose == Purpose::Sample {
            self.counters.late();
            self.expected.is_taken();
        }
        if overflowed {
            self.late.taken();
        }
        true
    }

    /// Whether an NMI without a cause is a late one of its counter.
    #[cold]
    pub(super) fn is_late(&self) -> bool {
        let is_late = self.late.claim();
        if is_late {
            self.counters.late();
        }
        is_late
    }

    /// Has this CPU's own source cause an NMI. If one is announced already, by a run that ended before it came, that is this one.
    #[inline]
    pub(super) fn ask_own<M: Machine>(&self, machine: &M) {
        self.expected.announce_own();
        let missed = machine.next_sample(self.id);
        if missed > 0 {
            self.counters.missed(missed);
        }
    }
}
