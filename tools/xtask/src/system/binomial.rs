//! How many of `n` samples hit something that each hits with probability `p`: exact tails of the binomial distribution.

use std::ops::RangeInclusive;

/// The distribution.
#[derive(Clone, Debug)]
pub struct Binomial {
    /// The probability of each count, from 0 to `n`.
    probabilities: Vec<f64>,
}

impl Binomial {
    /// Of `n` samples with probability `p`, which is neither 0 nor 1.
    #[must_use]
    pub fn new(n: u64, p: f64) -> Self {
        // In logarithms, because (1 - p)^n may be less than the smallest number. Each follows from the one before.
        let odds = (p / (1.0 - p)).ln();
        let mut log = n as f64 * (1.0 - p).ln();
        let mut probabilities = vec![log.exp()];
        for k in 1..=n {
            log += ((n - k + 1) as f64 / k as f64).ln() + odds;
            probabilities.push(log.exp());
        }
        Self { probabilities }
    }

    /// The counts that are left when as many as possible are taken away from each end, of a probability of at most `tail`.
    #[must_use]
    pub fn all_but(&self, tail: f64) -> RangeInclusive<u64> {
        let first = kept(self.probabilities.iter(), tail);
        let last = self.probabilities.len() - 1 - kept(self.probabilities.iter().rev(), tail);
        first as u64..=last as u64
    }
}

/// The first that is not in the tail.
fn kept<'a>(probabilities: impl Iterator<Item = &'a f64>, tail: f64) -> usize {
    let sums = probabilities.scan(0.0, |sum, probability| {
        *sum += probability;
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= tail).count()
}

#[cfg(test)]
impl Binomial {
    /// The probability that the count is one of these.
    #[must_use]
    pub fn within(&self, counts: &RangeInclusive<u64>) -> f64 {
        let (start, end) = (*counts.start() as usize, *counts.end() as usize);
        self.probabilities[start..=end].iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ones_are_exact() {
        let coins = Binomial::new(4, 0.5);
        for (counts, probability) in [(0..=0, 1.0), (1..=1, 4.0), (2..=2, 6.0), (3..=4, 5.0)] {
            assert!((coins.within(&counts) - probability / 16.0).abs() < 1e-12);
        }
        assert_eq!(coins.all_but(0.06), 0..=4);
        assert_eq!(coins.all_but(0.07), 1..=3);
        let dice = Binomial::new(3, 1.0 / 6.0);
        assert!((dice.within(&(1..=3)) - 91.0 / 216.0).abs() < 1e-12);
    }

    #[test]
    fn large_ones_neither_vanish_nor_lose_their_sum() {
        // 0.1^5000 is far below the smallest number.
        let large = Binomial::new(5000, 0.9);
        assert!((large.within(&(0..=5000)) - 1.0).abs() < 1e-9);
        // Near the normal distribution: 4.75 deviations of 21.2 on each side.
        let kept = large.all_but(1e-6);
        assert!(kept.start().abs_diff(4500 - 101) < 4, "{kept:?}");
        assert!(kept.end().abs_diff(4500 + 101) < 4, "{kept:?}");
        let tail = large.within(&(0..=kept.start() - 1));
        assert!(tail <= 1e-6 && tail + large.within(&(*kept.start()..=*kept.start())) > 1e-6);
    }
}
