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
const BOTH: u32 = 2;

/// A counter that has proved that it works.
#[derive(Debug)]
pub(super) struct OwnCounter {
    counter: Counter,
    /// Cycles in a second.
    hz: u64,
    pace: Pace,
    /// Cycles from one sample to the next, on average.
    period: AtomicU64,
}

impl OwnCounter {
    pub(super) const fn new(cpu: CpuId, counter: Counter, hz: u64) -> Self {
        Self {
            counter,
            hz,
            pace: Pace::new(cpu.0 as u64),
            period: AtomicU64::new(0),
        }
    }

    #[inline]
    fn interval(&self) -> u64 {
        // An interrupt in the handler of the last one would be wrong by all that is left of that.
        self.pace.interval(self.period.load(Relaxed)).max(1)
    }

    /// Begins, at so many samples a second.
    pub(super) fn start<B: MonitorBus<Fault = Infallible>>(&self, bus: &B, frequency: u64) {
        // An interval has up to one and a half of it, and the pace takes no more than 32 bits.
        let longest = (self.counter.period_max() * 2 / 3).min(u32::MAX.into());
        let period = (self.hz / frequency.max(1)).clamp(1, longest);
        self.period.store(period, Relaxed);
        let Ok(()) = self.counter.start(bus, self.interval());
    }

    /// Ends. What samples this CPU is changed before.
    pub(super) fn stop<B: MonitorBus<Fault = Infallible>>(&self, bus: &B, late: &Late) {
        late.owed(BOTH);
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
    pub(super) fn leave<B: MonitorBus<Fault = Infallible>>(&self, bus: &B, overflowed: bool) {
        let period = overflowed.then(|| self.interval());
        let Ok(()) = self.counter.leave(bus, period);
    }

    /// In a tick: goes on if the counter has overflowed long ago and its interrupt was lost. How many samples were missed.
    pub(super) fn look<B: MonitorBus<Fault = Infallible>>(&self, bus: &B, late: &Late) -> u64 {
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
        self.leave(bus, overflowed);
        if !overflowed {
            return 0;
        }
        1 + since / self.period.load(Relaxed).max(1)
    }
}
