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
pub const COMPARISONS: usize = 250;

/// The counts of a share between these that are believed, of so many samples.
pub fn believed(samples: u64, share: &RangeInclusive<f64>) -> RangeInclusive<u64> {
    let tail = ERROR_RATE / (2 * COMPARISONS) as f64;
    let within = |share: f64| Binomial::new(samples, share).all_but(tail);
    let low = *within(*share.start()).start();
    low..=*within(*share.end()).end()
}

/// Whether so many samples are enough for a bound of so much on each side of a share.
pub fn is_narrow(samples: u64, share: f64, points: f64) -> bool {
    let counts = believed(samples, &(share..=share));
    let (low, high) = (*counts.start() as f64, *counts.end() as f64);
    let samples = samples as f64;
    share - low / samples <= points && high / samples - share <= points
}

/// A share that is wrong, and so far away that no count is believed of both where bounds are of so much.
pub fn planted(share: f64, points: f64) -> f64 {
    /// So rare a share is told from none, and from one that is many times as large: 32 times where bounds are of 4 points.
    const RARE: f64 = 0.01;
    const TIMES: f64 = 800.0;
    match share {
        ..RARE => share * points * TIMES,
        ..0.5 => share + 2.0 * points,
        _ => share - 2.0 * points,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_of_4_points_takes_some_thousand_samples() {
        assert!(is_narrow(5600, 0.5, 0.04) && !is_narrow(5100, 0.5, 0.04));
        assert!(is_narrow(2500, 0.1, 0.04) && !is_narrow(2500, 0.2, 0.04));
    }

    #[test]
    fn a_bound_of_14_points_takes_some_hundred() {
        assert!(is_narrow(500, 0.5, 0.14) && !is_narrow(400, 0.5, 0.14));
    }

    #[test]
    fn no_count_is_believed_of_a_share_and_of_the_planted_one() {
        for (samples, points) in [(5600, 0.04), (500, 0.14)] {
            for share in [0.001, 0.01, 0.1, 0.125, 0.3, 0.49, 0.5, 0.6, 0.7, 0.99] {
                let truth = believed(samples, &(share..=share));
                let planted = planted(share, points);
                let wrong = believed(samples, &(planted..=planted));
                assert!(
                    truth.end() < wrong.start() || wrong.end() < truth.start(),
                    "{share}: {truth:?} {wrong:?}"
                );
            }
        }
    }

    #[test]
    fn a_share_that_is_known_to_lie_between_two_is_believed_as_both() {
        let between = believed(5600, &(0.2..=0.3));
        assert_eq!(between.start(), believed(5600, &(0.2..=0.2)).start());
        assert_eq!(between.end(), believed(5600, &(0.3..=0.3)).end());
    }
}
