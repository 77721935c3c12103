//! When samples are due on a CPU: about every millisecond, at times that no program can be in step with.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Nanoseconds from one sample to the next, on average, unless another rate is asked for.
pub const PERIOD: u64 = 1_000_000;

/// A CPU's sequence of intervals, from a half to three halves of a period, each as likely as any other. Drawn anew each time, they let the
/// samples drift through any period that the work may have: after `n` of them their phase is spread over about 0.29 periods times the
/// root of `n`. Only that CPU uses it.
#[derive(Debug)]
pub struct Pace(AtomicU64);

impl Pace {
    /// A sequence of its own for each seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        // Far apart in the generator's cycle, by the golden ratio's fraction of 2^64; the state is odd.
        Self(AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1))
    }

    /// The next interval, in the unit of the period, which is below 2^32.
    #[inline]
    pub fn interval(&self, period: u64) -> u64 {
        // A multiplicative congruential generator with Knuth's factor for MMIX ("The Art of Computer Programming", volume 2, 3.3.4, table
        // 1), of a period of 2^62; the upper bits are the good ones.
        let state = self.0.load(Relaxed);
        let next = state.wrapping_mul(6_364_136_223_846_793_005);
        self.0.store(next, Relaxed);
        period / 2 + (((next >> 32) * period) >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_about_a_millisecond_and_lie_anywhere_between_their_bounds() {
        for seed in 0..64 {
            let pace = Pace::new(seed);
            let intervals: Vec<u64> = (0..10_000).map(|_| pace.interval(PERIOD)).collect();
            let mean = intervals.iter().sum::<u64>() / 10_000;
            // Six standard errors of 289 us / sqrt(10,000).
            assert!(mean.abs_diff(PERIOD) < 17_400, "{seed}: {mean}");
            for tenth in 0..10 {
                let low = PERIOD / 2 + tenth * PERIOD / 10;
                let within = intervals
                    .iter()
                    .filter(|&&at| (low..low + PERIOD / 10).contains(&at))
                    .count();
                assert!(
                    within.abs_diff(1000) < 180,
                    "{seed}: {within} in tenth {tenth}"
                );
            }
        }
    }

    #[test]
    fn cpus_do_not_sample_in_step() {
        let (a, b) = (Pace::new(0), Pace::new(1));
        let same = (0..1000)
            .filter(|_| a.interval(PERIOD) == b.interval(PERIOD))
            .count();
        assert!(same < 5, "{same}");
    }
}
