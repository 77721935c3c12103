//! One hardware timer for two purposes: the tick, a hundred times a second, and one exact deadline.

use crate::base::addr::Nanos;
use core::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds from tick to tick.
pub const TICK: u64 = 10_000_000;

/// When the timer of a CPU is wanted. Only that CPU uses it; the words are atomic so that it can live in shared memory.
#[derive(Debug)]
pub struct TimerPlan {
    tick: AtomicU64,
    deadline: AtomicU64,
}

/// What a timer interrupt is for. Both may be false: the timer may come early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// The tick is due, and how many were due before it and are not made up for.
    pub tick: Option<u64>,
    /// The deadline has passed.
    pub deadline: bool,
}

impl TimerPlan {
    /// No deadline, and no tick before [`TimerPlan::start`].
    #[must_use]
    pub const fn new() -> Self {
        Self {
            tick: AtomicU64::new(u64::MAX),
            deadline: AtomicU64::new(u64::MAX),
        }
    }

    /// Begins ticking at times that are `phase` nanoseconds after multiples of [`TICK`]: CPUs get different phases, so that they
    /// do not all enter the kernel at once.
    pub fn start(&self, now: Nanos, phase: u64) {
        let next = (now.0 / TICK + 1) * TICK + phase % TICK;
        self.tick.store(next, Ordering::Relaxed);
    }

    /// Replaces the deadline.
    pub fn set_deadline(&self, deadline: Nanos) {
        self.deadline.store(deadline.0, Ordering::Relaxed);
    }

    /// When the timer is to interrupt next.
    #[must_use]
    pub fn next(&self) -> Nanos {
        let tick = self.tick.load(Ordering::Relaxed);
        Nanos(tick.min(self.deadline.load(Ordering::Relaxed)))
    }

    /// Takes what is due at `now`. A tick moves on to the next multiple that has not passed: one that was missed is not made
    /// up for, since a sample would then stand for a time at which nothing was looked at.
    pub fn take(&self, now: Nanos) -> Due {
        let tick = self.tick.load(Ordering::Relaxed);
        let due = Due {
            tick: now.0.checked_sub(tick).map(|late| late / TICK),
            deadline: self.deadline.load(Ordering::Relaxed) <= now.0,
        };
        if let Some(missed) = due.tick {
            let next = tick.saturating_add((missed + 1).saturating_mul(TICK));
            self.tick.store(next, Ordering::Relaxed);
        }
        if due.deadline {
            self.deadline.store(u64::MAX, Ordering::Relaxed);
        }
        due
    }
}

impl Default for TimerPlan {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn deadlines_come_once_and_ticks_keep_their_grid() {
        let plan = TimerPlan::new();
        assert_eq!(plan.next(), Nanos::NEVER);
        plan.start(Nanos(25_000_000), 3);
        assert_eq!(plan.next(), Nanos(30_000_003));
        plan.set_deadline(Nanos(26_000_000));
        assert_eq!(plan.next(), Nanos(26_000_000));
        assert_eq!(plan.take(Nanos(25_999_999)), Due::default());
        assert_eq!(
            plan.take(Nanos(26_000_000)),
            Due {
                tick: None,
                deadline: true
            }
        );
        assert_eq!(plan.take(Nanos(30_000_002)), Due::default());
        assert_eq!(
            plan.take(Nanos(61_000_000)),
            Due {
                tick: Some(3),
                deadline: false
            }
        );
        assert_eq!(plan.next(), Nanos(70_000_003));
    }

    proptest! {
        #[test]
        fn no_tick_is_early_or_doubled(phase in any::<u64>(), steps in prop::collection::vec(0..3 * TICK, 1..100)) {
            let plan = TimerPlan::new();
            let (mut now, mut last) = (12_345, None);
            plan.start(Nanos(now), phase);
            for step in steps {
                now += step;
                if let Some(missed) = plan.take(Nanos(now)).tick {
                    let slot = (now - phase % TICK) / TICK;
                    prop_assert_eq!(slot, last.map_or(slot, |last| last + 1 + missed), "all are accounted for");
                    last = Some(slot);
                }
                prop_assert!(plan.next().0 > now && plan.next().0 <= now + 2 * TICK);
                prop_assert_eq!(plan.next().0 % TICK, phase % TICK);
            }
        }
    }
}
