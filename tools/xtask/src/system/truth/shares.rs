//! Known shares on a machine that runs as fast as it can: a sample that comes late, as they do on a busy host, is as likely to hit each
//! loop as one that comes in time. Here the tick is tried, too. Where instructions are counted it might be in step with the program's
//! rounds, and never leave it.
//!
//! The planted error is a program told `80 10 10`: `share_a` has 80 % of the time instead of 60 %. It stands out from the 1000
//! samples that the tick takes in ten seconds.

use anyhow::{Result, bail, ensure};

use crate::test::{Case, Context, Verdict};

use super::super::session::Session;
use super::bound::believed;

/// Samples of the loops: enough for a bound of 10 points, and for a planted error to stand out.
const SAMPLES: u64 = 1000;
/// Windows that must be enough for them. Five are, if no tick comes late.
const WINDOWS: usize = 60;
/// Most of the program's samples that may be outside of its loops, where it looks at the clock between rounds: one in so many.
const ELSEWHERE: u64 = 4;

/// What the profiled program is told, and does.
const TOLD: &str = "shares 60 30 10";
const SHARES: [f64; 3] = [0.6, 0.3, 0.1];
/// What another one is told, and does, while it is judged by the same shares.
const PLANTED: &str = "shares 80 10 10";

/// Comparisons of those tests that must pass.
#[cfg(test)]
pub const COMPARISONS: usize = 4 * SHARES.len();

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    let tick = move |cpus| judge(&measure(context, cpus, "tick", TOLD)?);
    vec![
        Case::new("shares_by_tick_are_true_on_1_cpu", move || tick(1)),
        Case::new("shares_by_tick_are_true_on_2_cpus", move || tick(2)),
        Case::new("shares_by_tick_are_true_on_4_cpus", move || tick(4)),
        Case::new("shares_by_nmi_are_true", || {
            judge(&measure(context, 4, "timer", TOLD)?)
        }),
        Case::new("planted_shares_are_refused", || {
            let counts = measure(context, 2, "timer", PLANTED)?;
            ensure!(judge(&counts).is_err(), "they went unnoticed: {counts:?}");
            Ok(())
        }),
    ]
}

/// Profiles a program alone until there are enough samples.
fn measure(context: &Context<'_>, cpus: u32, source: &str, program: &str) -> Result<[u64; 3]> {
    let mut session = Session::on(context, cpus)?;
    let pid = session.start(program)?;
    let (mut counts, mut all) = ([0; 3], 0);
    for _ in 0..WINDOWS {
        let line = format!("2000 {pid} 512 depth 1 source {source}");
        let Some(report) = session.profile_if_run(&line)? else {
            continue;
        };
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
        let believed = believed(samples, &(share..=share));
        ensure!(
            believed.contains(count),
            "{count} of {samples} is not {share}: {believed:?} would be. All counts: {counts:?}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::binomial::Binomial;
    use super::super::bound::{COMPARISONS, ERROR_RATE};
    use super::*;

    fn passes(true_shares: [f64; 3]) -> [f64; 3] {
        let mut truths = true_shares.into_iter();
        SHARES.map(|share| {
            let truth = truths.next().unwrap_or(share);
            Binomial::new(SAMPLES, truth).within(&believed(SAMPLES, &(share..=share)))
        })
    }

    #[test]
    fn the_bound_is_10_points_at_most() {
        for share in SHARES {
            let bound = believed(SAMPLES, &(share..=share));
            assert!(bound.end() - bound.start() <= SAMPLES / 5, "{bound:?}");
        }
    }

    #[test]
    fn a_true_report_fails_no_more_often_than_its_part_of_the_chance() {
        let fails: f64 = passes(SHARES).into_iter().map(|pass| 1.0 - pass).sum();
        let part = ERROR_RATE * SHARES.len() as f64 / COMPARISONS as f64;
        assert!(fails <= part && fails > part / 4.0, "{fails:e}");
    }

    #[test]
    fn the_planted_error_passes_less_than_once_in_a_billion() {
        // It has to deceive all three, so no more often than the share that is hardest to deceive.
        let passes = passes([0.8, 0.1, 0.1]).into_iter().fold(1.0, f64::min);
        assert!(passes < 1e-9, "{passes:e}");
    }

    #[test]
    fn other_errors_are_told_from_noise() {
        assert!(judge(&[600, 300, 100]).is_ok());
        assert!(judge(&[640, 270, 90]).is_ok());
        assert!(judge(&[700, 200, 100]).is_err());
        assert!(judge(&[600, 340, 60]).is_ok());
        assert!(judge(&[590, 390, 20]).is_err());
        assert!(judge(&[1000, 0, 0]).is_err());
    }
}
