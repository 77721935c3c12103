//! Each interface, with counters that are good and with counters that lie in each way: which source samples then, and what became
//! of each interrupt. The shim's record says how many there were, and the report how many were taken; both must be the same to the last one.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::system::report::{Fates, Report};
use crate::test::{Context, Verdict};

use super::machine::{Machine, Tally, Time};

/// How the counters are, in the shim's words, and what must come of it.
const MODES: [(&str, Outcome); 8] = [
    ("good", Outcome::Exact),
    ("dropping", Outcome::Dropped),
    ("late", Outcome::Late),
    ("swallowing", Outcome::Unused),
    ("latched", Outcome::Unused),
    ("absurd", Outcome::Unused),
    ("silent", Outcome::Unused),
    ("faulting", Outcome::Unused),
];

/// What comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Every interrupt is a sample.
    Exact,
    /// Every interrupt that is not lost is a sample, and those that are lost do not stop it.
    Dropped,
    /// Every interrupt that is the first of its overflow is a sample, and the others are told to be late.
    Late,
    /// The counter is found out, and another source samples.
    Unused,
}

/// Milliseconds of a window: enough for three of a hundred interrupts.
const WINDOW: u64 = 400;
/// One interrupt in so many goes wrong.
const ONE_IN: u64 = 100;

/// All modes of an interface on one CPU that is never halted. `source` is the long name of what samples by it. The table is left in
/// `target/pmu-intel.txt` and its like.
///
/// # Errors
/// What is not as it must be.
pub fn modes(context: &Context<'_>, interface: &str, source: &str) -> Verdict {
    let mut table = String::from(
        "MODE        SOURCE                    TAKEN  NMIS  DROPPED  AGAIN  LATE  MISSED\n",
    );
    for (mode, outcome) in MODES {
        let counters = format!("{interface}:{mode}");
        let source = match outcome {
            // The only timer that sends one CPU NMIs is the shim's.
            Outcome::Unused => "tick",
            _ => source,
        };
        let sampled = sample(context, &counters, 1);
        let (report, tally) = sampled.context(counters.clone())?;
        let (taken, odd) = (report.fates().taken, |name| odd(&report, name));
        writeln!(
            table,
            "{mode:<11} {:<25} {taken:>5} {:>5} {:>8} {:>6} {:>5} {:>7}",
            report.source,
            tally.counter,
            tally.dropped,
            tally.late,
            odd("late"),
            odd("missed"),
        )?;
        let name = format!("pmu-{interface}.txt");
        fs::write(context.workspace.target.join(name), &table)?;
        ensure!(report.source == source, "{counters}: {report:?}");
        check(outcome, &report, &tally).context(counters)?;
    }
    Ok(())
}

/// Good counters on 4 CPUs.
///
/// # Errors
/// What is not as it must be.
pub fn all_cpus(context: &Context<'_>, interface: &str, source: &str) -> Verdict {
    let (report, tally) = sample(context, interface, 4)?;
    ensure!(report.source == source && report.cpus == 4, "{report:?}");
    exact(&report, &tally)
}

/// Takes a profile of busy CPUs. What the shim has recorded meanwhile. Time is counted in instructions: where the host may keep a CPU from
/// running, a counter may rightly be found out to interrupt too late.
fn sample(context: &Context<'_>, counters: &str, smp: u32) -> Result<(Report, Tally)> {
    let mut machine = Machine::boot(context, counters, smp, Time::Counted)?;
    for _ in 0..smp {
        // It pauses now and then, or the other CPUs had no turn.
        machine.session.start("shares 100")?;
    }
    let before = machine.tally()?;
    let report = machine.session.profile(&format!("{WINDOW} all 20 -v"))?;
    let tally = machine.tally()?.since(before);
    machine.power_off()?;
    Ok((report, tally))
}

fn check(outcome: Outcome, report: &Report, tally: &Tally) -> Verdict {
    if outcome == Outcome::Unused {
        ensure!(*tally == Tally::default(), "{tally:?}");
        ensure!(report.samples > 0, "{report:?}");
        return Ok(());
    }
    exact(report, tally)?;
    // An interval is anything from half a period to three halves: the number in a window varies by the root of a twelfth of it, of which
    // six are one chance in five hundred million. What an interrupt takes is not counted by the counter.
    let fewest = WINDOW - 6 * (WINDOW / 12).isqrt() - WINDOW / 20;
    let wrong = (tally.counter + tally.dropped) / ONE_IN;
    let (dropped, late) = match outcome {
        Outcome::Dropped => (wrong, 0),
        Outcome::Late => (0, wrong),
        Outcome::Exact | Outcome::Unused => (0, 0),
    };
    ensure!((tally.dropped, tally.late) == (dropped, late), "{tally:?}");
    // A tick finds out that one was lost: 10 ms, and as many samples, are missed at most, and the one that was lost.
    let missed = odd(report, "missed");
    ensure!((dropped..=dropped * 16).contains(&missed), "{report:?}");
    ensure!(report.samples + missed >= fewest, "{report:?}");
    Ok(())
}

/// Each NMI of a counter is a sample or late, and no other is. The last one of a run may come once the counter is stopped.
fn exact(report: &Report, tally: &Tally) -> Verdict {
    let Fates { taken, dropped, .. } = report.fates();
    let late = odd(report, "late");
    let all = tally.counter + tally.late;
    ensure!(dropped == 0 && taken + late == all, "{tally:?}, {report:?}");
    ensure!(
        (tally.late..=tally.late + report.cpus).contains(&late),
        "{tally:?}, {report:?}"
    );
    Ok(())
}

fn odd(report: &Report, name: &str) -> u64 {
    report.odd.get(name).copied().unwrap_or_default()
}
