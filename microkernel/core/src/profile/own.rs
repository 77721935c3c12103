//! A CPU's own performance counter, while it says when this CPU is sampled.

use super::late::Late;
use crate::apic::pace::Pace;
use crate::base::cpu::CpuId;
use crate::pmu::{Counter, MonitorBus};
use core::convert::Infallible;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Parts of a second after which an interrupt that has not come is lost: it proved to come sooner.
const LOST: u64 = 1000;
/// NMIs of an overflow that was dealt with outside of one.
pub(super) const BOTH: u64 = 2;

/// Cycles from one sample of a CPU to the next.
// What changes is apart from the counter, which a CPU may not have: so it lies where it need not be asked for.
#[derive(Debug)]
pub(super) struct Intervals {
    pace: Pace,
    /// On average.
    period: AtomicU64,
}

impl Intervals {
    pub(super) const fn new(cpu: CpuId) -> Self {
        Self {
            pace: Pace::new(cpu.0 as u64),
            period: AtomicU64::new(0),
        }
    }

    #[inline]
    fn next(&self) -> u64 {
        self.pace.interval(self.period.load(Relaxed))
    }
}

/// A counter that has proved that it works.
#[derive(Debug)]
pub(super) struct OwnCounter {
    counter: Counter,
    /// Cycles in a second.
    hz: u64,
}

impl OwnCounter {
    pub(super) const fn new(counter: Counter, hz: u64) -> Self {
        Self { counter, hz }
    }

    /// Begins, at so many samples a second.
    pub(super) fn start<B: MonitorBus<Fault = Infallible>>(
        &self,
        bus: &B,
        intervals: &Intervals,
        frequency: u64,
    ) {
        // An interval has at least half of it, which is not 0, and at most one and a half; and the pace takes no more than 32 bits.
        let longest = (self.counter.period_max() * 2 / 3).min(u32::MAX.into());
        let period = (self.hz / frequency.max(1)).clamp(2, longest);
        intervals.period.store(period, Relaxed);
        let Ok(()) = self.counter.start(bus, intervals.next());
    }

    /// Ends. What samples this CPU is changed before, and its last NMIs are [owed](Late::owed).
    pub(super) fn stop<B: MonitorBus<Fault = Infallible>>(&self, bus: &B) {
        let Ok(()) = self.counter.stop(bus);
    }

    /// The first step in an NMI: whether the counter has overflowed.
    #[inline]
    pub(super) fn enter<B: MonitorBus<Fault = Infallible>>(&self, bus: &B) -> bool {
        let Ok(overflowed) = self.counter.enter(bus);
        overflowed
    }

    /// The last step in an NMI.
    #[inline]
    pub(super) fn leave<B: MonitorBus<Fault = Infallible>>(
        &self,
        bus: &B,
        intervals: &Intervals,
        overflowed: bool,
    ) {
        let period = overflowed.then(|| intervals.next());
        let Ok(()) = self.counter.leave(bus, period);
    }

    /// In a tick: goes on if the counter has overflowed long ago and its interrupt was lost. How many samples were missed.
    pub(super) fn look<B: MonitorBus<Fault = Infallible>>(
        &self,
        bus: &B,
        intervals: &Intervals,
        late: &Late,
    ) -> u64 {
        let Ok(overflowed) = self.counter.has_overflowed(bus);
        if !overflowed {
            return 0;
        }
        let Ok(since) = self.counter.read(bus);
        if since < self.hz / LOST || since > self.counter.period_max() {
            return 0;
        }
        late.owed(BOTH);
        // If its NMI comes now after all, that one finds no overflow, or both do. It is for the next period then in either case.
        let overflowed = self.enter(bus);
        self.leave(bus, intervals, overflowed);
        if !overflowed {
            return 0;
        }
        1 + since / intervals.period.load(Relaxed).max(1)
    }
}
