//! How a program ended, in words: nothing if it meant to, else what happened and where.

use alloc::format;
use alloc::string::String;
use core::fmt::{self, Write};

use ipc::abi::exit::{BacktraceEnd, FaultKind};
use ipc::backtrace::reports_panics;
use ipc::proto::init::{Crash, Ending, ExitReport};
use profd::shorten::Shortener;
use profd::text::COLUMNS;

use crate::system::System;
use crate::text;

/// Before a caller, as in a report of profd.
const CALLER: &str = "        <- ";
/// Fewest columns that a place gets, whatever stands beside it.
const PLACE_COLUMNS: usize = 16;

/// Writes how a process ended, unless it exited with 0.
///
/// # Errors
/// The session is gone.
pub fn describe(
    report: &ExitReport,
    system: &mut dyn System,
    out: &mut (impl Write + ?Sized),
) -> fmt::Result {
    let ExitReport { pid, name, .. } = report;
    match (report.ending, report.code) {
        (Ending::Exited, 0) => Ok(()),
        (Ending::Exited, code) => writeln!(out, "{name}: exited with code {code} (pid {pid})"),
        (Ending::Killed, _) => writeln!(out, "{name}: killed (pid {pid})"),
        (Ending::Faulted, _) => match &report.crash {
            Some(crash) => describe_crash(report, crash, system, out),
            None => writeln!(out, "{name}: faulted; no report was kept (pid {pid})"),
        },
    }
}

/// What happened, where, and how it got there: the form of a panic's backtrace, with equal lines as one.
fn describe_crash(
    report: &ExitReport,
    crash: &Crash,
    system: &mut dyn System,
    out: &mut (impl Write + ?Sized),
) -> fmt::Result {
    let ExitReport { pid, name, .. } = report;
    let panicked = crash.fault() == Some(FaultKind::Breakpoint);
    let mut frames = crash
        .frames()
        .enumerate()
        .map(|(depth, (address, times))| (place(report, address, depth > 0, system), times))
        .skip_while(|(place, _)| panicked && is_reporter(place));
    let mut names = Shortener::default();
    let (at, _) = frames.next().unwrap_or_else(|| ("?".into(), 1));
    let (before, after) = (format!("{name}: {crash} at "), format!(" (pid {pid})"));
    let at = names.fit(&at, room(&before, &after));
    out.write_str(&text::wrapped(&format!("{before}{at}{after}")))?;
    for (caller, times) in frames {
        let after = match times {
            1 => String::new(),
            _ => format!(" ({times} times)"),
        };
        let caller = names.fit(&caller, room(CALLER, &after));
        writeln!(out, "{CALLER}{caller}{after}")?;
    }
    match crash.end() {
        BacktraceEnd::Outermost => Ok(()),
        BacktraceEnd::More => writeln!(out, "{CALLER}..."),
        BacktraceEnd::Cut => writeln!(out, "{CALLER}?"),
    }
}

/// Columns left for a place.
fn room(before: &str, after: &str) -> usize {
    COLUMNS
        .saturating_sub(before.len() + after.len())
        .max(PLACE_COLUMNS)
}

/// Whether a place, with its image before it, is in one of them.
fn is_reporter(place: &str) -> bool {
    place
        .split_once('`')
        .is_some_and(|(_, function)| reports_panics(function))
}

fn place(report: &ExitReport, address: u64, is_return: bool, system: &mut dyn System) -> String {
    let name = system.locate(report.pid, address, is_return);
    name.unwrap_or_else(|| format!("{}`{address:#x}", report.name))
}
