//! Which counts are believed of a share that is known.
//!
//! Each sample is taken to hit something with the probability of its share, independently of the others. The times of samples are not
//! independent: each is an interval after the last, of a half to three halves of a millisecond. That makes counts vary less than those
//! of independent samples if what the program does repeats after many intervals, and as much if it repeats within a small part of one,
//! which is why the rounds of the programs are one or the other. So the exact tails of the binomial distribution are the bound.

use std::ops::RangeInclusive;

use super::super::binomial::Binomial;

/// The chance, for a whole run of the tests, that a true report fails one.
pub const ERROR_RATE: f64 = 1e-6;
/// Comparisons in a run, at most; the chance is divided among them.
pub const COMPARISONS: usize = 150;
/// How far from the truth a count may be that is believed, at most.
pub const POINTS: f64 = 0.04;

/// The counts of a share between these that are believed, of so many samples.
pub fn believed(samples: u64, share: &RangeInclusive<f64>) -> RangeInclusive<u64> {
    let tail = ERROR_RATE / (2 * COMPARISONS) as f64;
    let within = |share: f64| Binomial::new(samples, share).all_but(tail);
    let low = *within(*share.start()).start();
    low..=*within(*share.end()).end()
}

/// Whether so many samples are enough for a bound of [`POINTS`] on each side of a share.
pub fn is_narrow(samples: u64, share: f64) -> bool {
    let counts = believed(samples, &(share..=share));
    let (low, high) = (*counts.start() as f64, *counts.end() as f64);
    let samples = samples as f64;
    share - low / samples <= POINTS && high / samples - share <= POINTS
}

/// A share that is wrong, and so far away that no count is believed of both.
pub fn planted(share: f64) -> f64 {
    const RARE: f64 = 0.01;
    match share {
        ..RARE => 20.0 * share,
        ..0.5 => share + 2.0 * POINTS,
        _ => share - 2.0 * POINTS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples that are enough, whatever the share.
    const ENOUGH: u64 = 5500;

    #[test]
    fn a_bound_of_4_points_takes_some_thousand_samples() {
        assert!(is_narrow(ENOUGH, 0.5) && !is_narrow(ENOUGH - 500, 0.5));
        assert!(is_narrow(2500, 0.1) && !is_narrow(2500, 0.2));
    }

    #[test]
    fn no_count_is_believed_of_a_share_and_of_the_planted_one() {
        for share in [0.001, 0.01, 0.1, 0.125, 0.3, 0.49, 0.5, 0.6, 0.7, 0.99] {
            let truth = believed(ENOUGH, &(share..=share));
            let planted = planted(share);
            let wrong = believed(ENOUGH, &(planted..=planted));
            assert!(
                truth.end() < wrong.start() || wrong.end() < truth.start(),
                "{share}: {truth:?} {wrong:?}"
            );
        }
    }

    #[test]
    fn a_share_that_is_known_to_lie_between_two_is_believed_as_both() {
        let between = believed(ENOUGH, &(0.2..=0.3));
        assert_eq!(between.start(), believed(ENOUGH, &(0.2..=0.2)).start());
        assert_eq!(between.end(), believed(ENOUGH, &(0.3..=0.3)).end());
    }
}
