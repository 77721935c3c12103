//! Whether `profile` tells the truth: a program whose time is spent in known shares, and one that only pretends to.
//!
//! A sample of `shares` is taken to hit each loop with the probability of its share, independently: the program's rounds are
//! short against the distance of samples. Then a loop's count has a binomial distribution, and the bound is exact: the counts
//! that are left when both tails are cut off, of [`ERROR_RATE`] for all shares and tails together.
//!
//! The planted error is a program told `75 15 10`: `share_a` has 75 % of the time instead of 60 %. (Told `75 30 10` it would
//! have 65 %: to tell that from 60 % as reliably takes 8,000 samples, more than a minute of windows at 100 a second.)

use anyhow::{Result, bail, ensure};

use crate::test::{Case, Context, Verdict};

use super::binomial::Binomial;
use super::session::Session;

/// The chance, for the whole test, that a true report fails it.
const ERROR_RATE: f64 = 1e-6;
/// Samples of the loops: enough for a bound of 8 points, and for a planted error to stand out.
const SAMPLES: u64 = 1000;
/// Windows that must be enough for them. Five are, if no tick comes late.
const WINDOWS: usize = 60;
/// Most of the program's samples that may be outside of its loops, where it looks at the clock between rounds: one in so many.
const ELSEWHERE: u64 = 4;

/// What the profiled program is told, and does.
const TOLD: &str = "shares 60 30 10";
const SHARES: [f64; 3] = [0.6, 0.3, 0.1];
/// What another one is told, and does, while it is judged by the same shares.
const PLANTED: &str = "shares 75 15 10";

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("shares_are_true", || judge(&measure(context, TOLD)?)),
        Case::new("planted_shares_are_refused", || {
            let counts = measure(context, PLANTED)?;
            ensure!(judge(&counts).is_err(), "they went unnoticed: {counts:?}");
            Ok(())
        }),
    ]
}

/// Profiles a program alone until there are enough samples.
fn measure(context: &Context<'_>, program: &str) -> Result<[u64; 3]> {
    let mut session = Session::on(context, 2)?;
    let pid = session.start(program)?;
    let (mut counts, mut all) = ([0; 3], 0);
    for _ in 0..WINDOWS {
        let report = session.profile(&format!("2000 {pid} 100 depth 1"))?;
        all += report.samples;
        for (count, name) in counts.iter_mut().zip(["share_a", "share_b", "share_c"]) {
            *count += report.count("shares", name);
        }
        let hits: u64 = counts.iter().sum();
        ensure!(
            (all - hits) * ELSEWHERE <= all,
            "{hits} of {all} samples are in the loops: {report:?}"
        );
        if hits >= SAMPLES {
            session.power_off()?;
            return Ok(counts);
        }
    }
    bail!("too few samples after {WINDOWS} windows: {counts:?}")
}

/// Fails if a count is not within its bound.
fn judge(counts: &[u64; 3]) -> Verdict {
    let samples = counts.iter().sum();
    for (share, count) in SHARES.into_iter().zip(counts) {
        let allowed = allowed(samples, share);
        ensure!(
            allowed.contains(count),
            "{count} of {samples} is not {share}: from {} to {} would be. All counts: {counts:?}",
            allowed.start(),
            allowed.end()
        );
    }
    Ok(())
}

/// The counts of a share that are believed: those outside have a chance of [`ERROR_RATE`], divided among shares and tails.
fn allowed(samples: u64, share: f64) -> std::ops::RangeInclusive<u64> {
    Binomial::new(samples, share).all_but(ERROR_RATE / (2 * SHARES.len()) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_8_points_at_most() {
        let bounds = SHARES.map(|share| allowed(SAMPLES, share));
        assert_eq!(bounds, [520..=678, 228..=375, 55..=152]);
        let more = 100 * SAMPLES;
        assert!(SHARES.into_iter().all(|share| {
            let bound = allowed(more, share);
            bound.end() - bound.start() < more / 60
        }));
    }

    #[test]
    fn a_true_report_passes_but_once_in_a_million() {
        let passes =
            SHARES.map(|share| Binomial::new(SAMPLES, share).within(&allowed(SAMPLES, share)));
        let fails: f64 = passes.into_iter().map(|pass| 1.0 - pass).sum();
        assert!(fails <= ERROR_RATE && fails > ERROR_RATE / 4.0, "{fails:e}");
    }

    #[test]
    fn the_planted_error_passes_less_than_once_in_a_billion() {
        // It has to deceive all three, so no more often than the share that is hardest to deceive.
        let passes = [0.75, 0.15, 0.1]
            .into_iter()
            .zip(SHARES)
            .map(|(true_share, share)| {
                Binomial::new(SAMPLES, true_share).within(&allowed(SAMPLES, share))
            });
        let passes = passes.fold(1.0, f64::min);
        assert!(passes < 1e-9, "{passes:e}");
    }

    #[test]
    fn other_errors_are_told_from_noise() {
        assert!(judge(&[600, 300, 100]).is_ok());
        assert!(judge(&[640, 270, 90]).is_ok());
        assert!(judge(&[690, 210, 100]).is_err());
        assert!(judge(&[600, 340, 60]).is_ok());
        assert!(judge(&[600, 360, 40]).is_err());
        assert!(judge(&[1000, 0, 0]).is_err());
    }
}
