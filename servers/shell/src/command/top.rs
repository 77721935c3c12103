//! `top`: who had the CPUs in a window of time.

pub(super) mod share;
mod snapshot;
mod usage;

#[cfg(test)]
mod tests;

use core::fmt;

use profd::request::number;
use profd::text::counted;

use super::{Argument, Command, Context, Group, Quoted, Role};
use crate::format::{MILLISECOND, Name};
use crate::pause::pause;
use share::Share;
use snapshot::Snapshot;
use usage::Usage;

/// Longest window, in milliseconds.
pub(super) const WINDOW_MAX: u64 = 60_000;
/// Window if nothing is said.
pub(super) const WINDOW: u64 = 1000;
/// Rows of a screen.
const SCREEN: usize = 24;
/// Rows that are neither a thread's nor a CPU's, the prompt's among them.
const OTHER_ROWS: usize = 7;
/// CPUs in a row.
const CPUS_IN_ROW: usize = 5;

pub(super) const TOP: Command = Command {
    name: "top",
    group: Group::Measure,
    role: Role::Observe,
    usage: "top [ms] [all]",
    summary: "who has the CPUs",
    arguments: &[Argument::Other, Argument::OneOf(&["all"])],
    details: "\
ms   how long, 1 to 60000; 1000 if not said. Ctrl-C ends it early
all  every thread that ran, not only those that fit a screen

CPU% is of one CPU; CPU is where the thread ran last. Threads, ended and idle
add up to 100 for each CPU, but for `off`: records are read one after the other
while time passes, and so disagree, for each CPU by twice that time at most.
",
    facts: None,
    examples: &[
        ("top", "one second, the busiest threads"),
        ("top 100 all", "100 ms, every thread that ran"),
    ],
    run,
};

fn run(mut context: Context<'_>) -> fmt::Result {
    let (word, all) = match *context.args {
        ["all", "all", ..] | [_, "all", "all", ..] => {
            let all = Quoted("all");
            return context.fail(format_args!("{all} is given twice: once is enough"));
        }
        [] => (None, false),
        ["all"] => (None, true),
        [word] => (Some(word), false),
        [word, "all"] => (Some(word), true),
        [_, "all", extra, ..] | [_, extra, ..] => return context.too_many(extra),
    };
    let window = match word.map(|word| number(word, 1..=WINDOW_MAX).ok_or(Quoted(word))) {
        None => WINDOW,
        Some(Ok(window)) => window,
        Some(Err(word)) => {
            return context.fail(format_args!(
                "window {word}: 1 to {WINDOW_MAX} milliseconds"
            ));
        }
    };
    let Context {
        session, system, ..
    } = &mut context;
    let measured = Snapshot::take(*system).and_then(|first| {
        pause(*session, *system, first.ended + window * MILLISECOND);
        Ok(Usage::between(&first, &Snapshot::take(*system)?))
    });
    match measured {
        Ok(usage) => show(&usage, all, context.session),
        Err(error) => context.fail(error),
    }
}

fn show(usage: &Usage, all: bool, out: &mut (impl fmt::Write + ?Sized)) -> fmt::Result {
    let count = usage.cpus.len();
    let cpus = counted(count as u64, "cpu");
    writeln!(
        out,
        "{} ms on {cpus}, read in {} us",
        usage.window / MILLISECOND,
        usage.reading / 1000
    )?;
    writeln!(
        out,
        "{:>6} {:>5} {:>5} {:<16} {:>3} {:>3}",
        "CPU%", "PID", "TID", "NAME", "CPU", "PRI"
    )?;
    let room = SCREEN.saturating_sub(OTHER_ROWS + count.div_ceil(CPUS_IN_ROW));
    let fits = if all { usage.threads.len() } else { room };
    let (listed, rest) = usage.threads.split_at(fits.min(usage.threads.len()));
    for row in listed {
        writeln!(
            out,
            "{:>6} {:>5} {:>5} {:<16} {:>3} {:>3}",
            row.share,
            row.pid,
            row.tid,
            Name(&row.name),
            row.cpu,
            row.priority
        )?;
    }
    if !rest.is_empty() {
        let more = Share::sum(rest.iter().map(|row| row.share));
        writeln!(
            out,
            "{more:>6} {} more",
            counted(rest.len() as u64, "thread")
        )?;
    }
    writeln!(out, "{:>6} threads that have ended", usage.ended)?;
    writeln!(out, "cpu busy/idle")?;
    for (row, cpus) in usage.cpus.chunks(CPUS_IN_ROW).enumerate() {
        let mut between = "";
        for (column, cpu) in cpus.iter().enumerate() {
            let number = row * CPUS_IN_ROW + column;
            write!(out, "{between}{number:>2} {:>5}/{}", cpu.busy, cpu.idle)?;
            between = "  ";
        }
        writeln!(out)?;
    }
    writeln!(
        out,
        "total {}: threads {}, ended {}, idle {}, off {}",
        Share::cpus(count),
        usage.listed(),
        usage.ended,
        usage.idle(),
        usage.off()
    )
}
