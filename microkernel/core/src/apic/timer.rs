//! One hardware timer for three purposes: the tick, a hundred times a second; one exact deadline; and, while another CPU is
//! sampled from here, the times at which it is.

use super::pace::Pace;
use crate::base::addr::Nanos;
use core::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds from tick to tick.
pub const TICK: u64 = 10_000_000;

/// When the timer of a CPU is wanted. Only that CPU uses it; the words are atomic so that it can live in shared memory.
#[derive(Debug)]
pub struct TimerPlan {
    tick: AtomicU64,
    deadline: AtomicU64,
    sample: AtomicU64,
    /// Nanoseconds from sample to sample, on average.
    period: AtomicU64,
    /// When the last sample that was due was taken.
    taken: AtomicU64,
    pace: Pace,
}

/// A sample that is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DueSample {
    /// Nanoseconds for which it has been: this CPU had its interrupts off, or did not get to run.
    pub late: u64,
    /// How many were due after it and are not made up for.
    pub missed: u64,
}

/// What a timer interrupt is for. It may be for nothing: the timer may come early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// The tick is due, and how many were due before it and are not made up for.
    pub tick: Option<u64>,
    /// The deadline has passed.
    pub deadline: bool,
    /// A sample is due.
    pub sample: Option<DueSample>,
}

impl TimerPlan {
    /// No deadline, no samples, and no tick before [`TimerPlan::start`]. Plans of different seeds sample at different times.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            tick: AtomicU64::new(u64::MAX),
            deadline: AtomicU64::new(u64::MAX),
            sample: AtomicU64::new(u64::MAX),
            period: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            pace: Pace::new(seed),
        }
    }

    /// Begins ticking at times that are `phase` nanoseconds after multiples of [`TICK`]: CPUs get different phases, so that they
    /// do not all enter the kernel at once.
    pub fn start(&self, now: Nanos, phase: u64) {
        let next = (now.0 / TICK + 1) * TICK + phase % TICK;
        self.tick.store(next, Ordering::Relaxed);
    }

    /// Samples from now on, so many nanoseconds apart on average.
    pub fn start_sampling(&self, now: Nanos, period: u64) {
        self.period.store(period, Ordering::Relaxed);
        let first = now.0.saturating_add(self.pace.interval(period));
        self.sample.store(first, Ordering::Relaxed);
    }

    /// Ends that.
    pub fn stop_sampling(&self) {
        self.sample.store(u64::MAX, Ordering::Relaxed);
    }

    /// What a sample that was due asks of this CPU is done, but for the way out of the interrupt, which takes no longer than the
    /// rest of it did. The next one is not due before as much time again has passed behind that, a tick at most: so that samples
    /// leave it time for anything else, however fast they are to come and however slow the CPU is. Says whether that put it off.
    pub fn rest(&self, now: Nanos) -> bool {
        let took = now.0.saturating_sub(self.taken.load(Ordering::Relaxed));
        let earliest = now.0.saturating_add(took.saturating_mul(2).min(TICK));
        let is_early = self.sample.load(Ordering::Relaxed) < earliest;
        if is_early {
            self.sample.store(earliest, Ordering::Relaxed);
        }
        is_early
    }

    /// Replaces the deadline.
    pub fn set_deadline(&self, deadline: Nanos) {
        self.deadline.store(deadline.0, Ordering::Relaxed);
    }

    /// When the timer is to interrupt next.
    #[must_use]
    pub fn next(&self) -> Nanos {
        let [tick, deadline, sample] =
            [&self.tick, &self.deadline, &self.sample].map(|time| time.load(Ordering::Relaxed));
        Nanos(tick.min(deadline).min(sample))
    }

    /// Takes what is due at `now`. A tick moves on to the next multiple that has not passed: one that was missed is not made
    /// up for, since a sample would then stand for a time at which nothing was looked at.
    pub fn take(&self, now: Nanos) -> Due {
        let tick = self.tick.load(Ordering::Relaxed);
        let due = Due {
            tick: now.0.checked_sub(tick).map(|late| late / TICK),
            deadline: self.deadline.load(Ordering::Relaxed) <= now.0,
            sample: self.take_sample(now),
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

    /// The next sample is due an interval after this one was, so that a delay does not lower the rate; unless that has passed too.
    fn take_sample(&self, now: Nanos) -> Option<DueSample> {
        let due = self.sample.load(Ordering::Relaxed);
        let late = now.0.checked_sub(due)?;
        self.taken.store(now.0, Ordering::Relaxed);
        let period = self.period.load(Ordering::Relaxed);
        let interval = self.pace.interval(period);
        let next = due.saturating_add(interval);
        let missed = if next <= now.0 { late / period } else { 0 };
        let next = if next <= now.0 {
            now.0.saturating_add(interval)
        } else {
            next
        };
        self.sample.store(next, Ordering::Relaxed);
        Some(DueSample { late, missed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apic::pace::PERIOD;
    use proptest::prelude::*;

    #[test]
    fn deadlines_come_once_and_ticks_keep_their_grid() {
        let plan = TimerPlan::new(7);
        assert_eq!(plan.next(), Nanos::NEVER);
        plan.start(Nanos(25_000_000), 3);
        assert_eq!(plan.next(), Nanos(30_000_003));
        plan.set_deadline(Nanos(26_000_000));
        assert_eq!(plan.next(), Nanos(26_000_000));
        assert_eq!(plan.take(Nanos(25_999_999)), Due::default());
        assert_eq!(
            plan.take(Nanos(26_000_000)),
            Due {
                deadline: true,
                ..Due::default()
            }
        );
        assert_eq!(plan.take(Nanos(30_000_002)), Due::default());
        assert_eq!(
            plan.take(Nanos(61_000_000)),
            Due {
                tick: Some(3),
                ..Due::default()
            }
        );
        assert_eq!(plan.next(), Nanos(70_000_003));
    }

    #[test]
    fn samples_come_while_they_are_asked_for_and_keep_their_rate() {
        let plan = TimerPlan::new(7);
        plan.start_sampling(Nanos(0), PERIOD);
        let mut due = Vec::new();
        for _ in 0..10_000 {
            // A little late each time, and the rate is the same.
            let at = Nanos(plan.next().0 + 20_000);
            let taken = plan.take(at);
            assert_eq!(
                taken.sample,
                Some(DueSample {
                    late: 20_000,
                    missed: 0
                })
            );
            assert_eq!((taken.tick, taken.deadline), (None, false));
            due.push(at.0);
        }
        assert!(
            due[9_999].abs_diff(10_000 * PERIOD) < 174 * PERIOD,
            "six standard errors"
        );
        let long = Nanos(plan.next().0 + 7 * PERIOD);
        let late = plan.take(long).sample;
        assert_eq!(
            late,
            Some(DueSample {
                late: 7 * PERIOD,
                missed: 7
            })
        );
        assert!(plan.next() > long, "not made up for");
        plan.stop_sampling();
        assert_eq!(plan.next(), Nanos::NEVER);
        assert_eq!(plan.take(Nanos(u64::MAX - 1)), Due::default());
    }

    #[test]
    fn samples_leave_the_cpu_as_much_time_as_they_take() {
        let period = 10_000;
        for took in [0, 100, 2_000, 9_000, 50_000, 2_000_000] {
            let plan = TimerPlan::new(7);
            let mut put_off = 0_u64;
            let mut back = 0;
            plan.start_sampling(Nanos(0), period);
            for round in 0..1000 {
                let at = plan.next().0;
                assert!(round == 0 || at - back >= took, "{took}: {}", at - back);
                assert!(plan.take(Nanos(at)).sample.is_some());
                put_off += u64::from(plan.rest(Nanos(at + took)));
                // The way out.
                back = at + 2 * took;
            }
            // Intervals lie between 5,000 and 15,000.
            assert_eq!(put_off == 1000, took > 5_000, "{took}: {put_off}");
            assert_eq!(put_off > 0, took > 1_667, "{took}: {put_off}");
        }
    }

    #[test]
    fn a_sample_that_took_very_long_puts_the_next_one_off_by_a_tick() {
        let plan = TimerPlan::new(7);
        plan.start_sampling(Nanos(0), 10_000);
        let due = plan.next().0;
        assert!(plan.take(Nanos(due)).sample.is_some());
        let late = due + 1000 * TICK;
        assert!(plan.rest(Nanos(late)));
        assert_eq!(plan.next(), Nanos(late + TICK));
    }

    proptest! {
        #[test]
        fn no_tick_is_early_or_doubled(phase in any::<u64>(), steps in prop::collection::vec(0..3 * TICK, 1..100)) {
            let plan = TimerPlan::new(7);
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
