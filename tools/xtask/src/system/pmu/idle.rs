//! A counter gives nothing for a halted CPU: a report that has little in it for that reason, or nothing, says so.

use anyhow::ensure;

use crate::system::report::Report;
use crate::test::{Context, Verdict};

use super::TICK;
use super::machine::{Machine, Time};

const WHY: &str = "the counter stands still while a cpu is halted";

/// A window of which a program runs for half at most, and one in which nothing runs but what a machine does by itself, which is less than the
/// counter's shortest period.
///
/// # Errors
/// If there are more samples, or the report does not say why there are so few.
pub fn says_so(context: &Context<'_>, counters: &str) -> Verdict {
    let mut machine = Machine::boot(context, counters, 1, Time::Counted)?;
    // The shim has taken the timer, and still the samples do not come from the tick.
    let log = machine.session.run("dmesg")?.replace("\n  ", " ");
    ensure!(!log.contains(TICK), "{log}");
    machine.session.start("shares 100 -t 1000")?;
    for (ms, most) in [(2000, 1300), (20, 0)] {
        let said = machine.session.run(&format!("profile {ms}"))?;
        let report = Report::parse(&said)?;
        ensure!(report.source.starts_with("pmu/nmi "), "{said}");
        ensure!(report.samples <= most, "{said}");
        let prefix = if report.samples == 0 {
            "no samples: "
        } else {
            ""
        };
        let lines = said.replace("\n  ", " ");
        let is_said = |line: &str| {
            line.strip_prefix(prefix)
                .is_some_and(|line| line.starts_with(WHY))
        };
        ensure!(lines.lines().any(is_said), "{said}");
    }
    machine.power_off()
}
