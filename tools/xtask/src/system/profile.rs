//! `profile`: its report, its limits, its refusals, and whether it tells the truth.

use std::time::Duration;

use anyhow::{Result, bail, ensure};

use crate::test::{Case, Context, Verdict};

use super::report::Report;
use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("profile_on_1_cpu", || reports(context, 1)),
        Case::new("profile_on_2_cpus", || reports(context, 2)),
        Case::new("profile_on_4_cpus", || reports(context, 4)),
        Case::new("profile_on_8_cpus", || reports(context, 8)),
        Case::new("bad_arguments_are_refused_by_name", || refusals(context)),
        Case::new("ctrl_c_ends_the_window", || interrupt(context)),
        Case::new("callers_are_shown", || callers(context)),
        Case::new("shares_are_true", || truth(context)),
    ]
}

fn reports(context: &Context<'_>, smp: u32) -> Verdict {
    let mut session = Session::on(context, smp)?;
    let pid = session.start("spin")?;
    let report = session.profile("1000 all 20")?;
    ensure!(
        report.profiled_ms == 1000 && report.dropped == 0,
        "{report:?}"
    );
    ensure!(report.samples > 0 && report.source == "tick", "{report:?}");
    ensure!(
        report.chains.iter().any(|chain| chain.image == "spin"),
        "{report:?}"
    );
    if smp > 1 {
        ensure!(
            report.chains.iter().any(|chain| chain.image == "kernel"),
            "{report:?}"
        );
    }
    let report = session.profile(&format!("1000 {pid}"))?;
    ensure!(
        report.chains.iter().all(|chain| chain.image == "spin"),
        "{report:?}"
    );
    ensure!(
        report.taken.is_some_and(|taken| taken >= report.samples),
        "{report:?}"
    );
    session.expect("profile 200 all 8 folded", &["spin`"])?;
    session.expect("profile 200 all 8 -v", &["profiled 200 ms\n"])?;
    // A process that does not exist: an empty report, which says so.
    let empty = session.run("profile 100 999999")?;
    ensure!(
        empty.lines().count() >= 1 && !empty.contains('%'),
        "{empty}"
    );
    session.power_off()
}

/// Arguments that are wrong, and a word of what is allowed.
const REFUSALS: [(&str, &str); 8] = [
    ("0", "2000"),
    ("2001", "2000"),
    ("x", "2000"),
    ("100 all 0", "chains"),
    ("100 all 8 source foo", "foo"),
    ("100 all 8 source pmu", "pmu"),
    ("100 all 8 depth 0", "depth"),
    ("100 all 8 9 10", "too many arguments"),
];

fn refusals(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    for (arguments, word) in REFUSALS {
        let text = session.run(&format!("profile {arguments}"))?;
        let one_line = text.lines().count() == 1 && text.starts_with("profile: ");
        ensure!(
            one_line && text.contains(word),
            "`profile {arguments}` printed:\n{text}"
        );
    }
    session.profile("100")?;
    session.power_off()
}

fn interrupt(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    // However fast the machine is, one of these lies between the opening of the window and its end.
    let mut text = String::new();
    for wait_ms in [100, 300, 700, 1200] {
        session.guest.send(b"profile 2000\n")?;
        session.guest.wait_for("\n")?;
        std::thread::sleep(Duration::from_millis(wait_ms));
        session.guest.send(b"\x03")?;
        text = session.guest.prompt()?;
        if !text.contains("stopped before the window opened") {
            break;
        }
    }
    // The echo of Ctrl-C may stand before the report.
    let start = text.find("profiled ").unwrap_or(0);
    let report = Report::parse(&text[start..])?;
    ensure!(
        report.asked_ms == Some(2000) && report.profiled_ms < 2000,
        "{report:?}"
    );
    session.profile("100")?;
    session.power_off()
}

fn callers(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    let pid = session.start("chain 12")?;
    let report = session.profile(&format!("1000 {pid} depth 32"))?;
    let deepest = report.chains.iter().map(|chain| chain.callers.len()).max();
    ensure!(deepest.is_some_and(|callers| callers >= 12), "{report:?}");
    let cut = session.run(&format!("profile 500 {pid} 8 depth 4"))?;
    ensure!(cut.contains("more)"), "{cut}");
    session.power_off()
}

/// The chance, for the whole test, that a true report fails it.
const ERROR_RATE: f64 = 1e-6;
/// Largest bound that still says something.
const BOUND_MAX: f64 = 0.1;
/// Windows that must be enough to get as many samples as that takes.
const WINDOWS: usize = 60;

fn truth(context: &Context<'_>) -> Verdict {
    let expected = [0.6, 0.3, 0.1];
    let counts = measure(context, "shares 60 30 10", &expected)?;
    judge(&expected, &counts)?;
    // The same judge on a program that does something else.
    let counts = measure(context, "shares 75 15 10", &expected)?;
    ensure!(
        judge(&expected, &counts).is_err(),
        "a planted error went unnoticed: {counts:?}"
    );
    Ok(())
}

/// Profiles a program alone until there are enough samples for the bound.
fn measure(context: &Context<'_>, program: &str, expected: &[f64]) -> Result<Vec<u64>> {
    let mut session = Session::on(context, 2)?;
    let pid = session.start(program)?;
    let names = ["share_a", "share_b", "share_c"];
    let mut counts = vec![0; expected.len()];
    for _ in 0..WINDOWS {
        let report = session.profile(&format!("2000 {pid} 100 depth 1"))?;
        for (count, name) in counts.iter_mut().zip(names) {
            *count += report.count("shares", name);
        }
        if bound(counts.len(), counts.iter().sum()) < BOUND_MAX {
            session.power_off()?;
            return Ok(counts);
        }
    }
    bail!("too few samples after {WINDOWS} windows: {counts:?}")
}

/// How far a share may be off with so many samples: Hoeffding's inequality, divided among the shares (Bonferroni).
fn bound(shares: usize, samples: u64) -> f64 {
    ((2.0 * shares as f64 / ERROR_RATE).ln() / (2.0 * samples as f64)).sqrt()
}

/// Fails if a share is not within its bound.
fn judge(expected: &[f64], counts: &[u64]) -> Verdict {
    let samples: u64 = counts.iter().sum();
    let bound = bound(expected.len(), samples);
    for (expected, &count) in expected.iter().zip(counts) {
        let share = count as f64 / samples as f64;
        ensure!(
            (share - expected).abs() <= bound,
            "{share:.3} is not {expected} within {bound:.3}: {counts:?} of {samples}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_judge_knows_a_planted_error_from_noise() {
        let expected = [0.6, 0.3, 0.1];
        assert!(bound(3, 400) < 0.14 && bound(3, 800) < BOUND_MAX);
        assert!(judge(&expected, &[480, 240, 80]).is_ok());
        assert!(judge(&expected, &[520, 210, 70]).is_ok());
        assert!(judge(&expected, &[600, 120, 80]).is_err());
    }
}
