//! How a program ended, in words: nothing if it meant to, else what happened and where.

use alloc::format;
use alloc::string::String;
use core::fmt::{self, Write};

use ipc::abi::exit::{BacktraceEnd, FaultKind};
use ipc::proto::init::{Crash, Ending, ExitReport};

use crate::system::System;

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

/// What happened, where, and how it got there: the form of a panic's backtrace.
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
        .map(|(depth, address)| place(report, address, depth > 0, system))
        .skip_while(|place| panicked && reports_panics(place));
    let at = frames.next().unwrap_or_else(|| "?".into());
    writeln!(out, "{name}: {} at {at} (pid {pid})", Fault(crash))?;
    frames.try_for_each(|caller| writeln!(out, "        <- {caller}"))?;
    match crash.end() {
        BacktraceEnd::Outermost => Ok(()),
        BacktraceEnd::More => writeln!(out, "        <- ..."),
        BacktraceEnd::Cut => writeln!(out, "        <- ?"),
    }
}

/// Whether a function is one that a panic goes through on its way to the breakpoint: where it was is behind them.
fn reports_panics(place: &str) -> bool {
    ["`__rustc::", "`core::panicking::"]
        .iter()
        .any(|function| place.contains(function))
}

fn place(report: &ExitReport, address: u64, is_return: bool, system: &mut dyn System) -> String {
    let name = system.locate(report.pid, address, is_return);
    name.unwrap_or_else(|| format!("{}`{address:#x}", report.name))
}

/// What a thread did that the hardware refused.
struct Fault<'a>(&'a Crash);

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let crash = self.0;
        f.write_str(match crash.fault() {
            Some(FaultKind::Page) => {
                // Intel SDM volume 3A, 4.7: bit 0 present, bit 1 write, bit 4 instruction fetch.
                let bit = |number: u32| crash.error_code >> number & 1 == 1;
                let access = match (bit(4), bit(1)) {
                    (true, _) => "execution of",
                    (_, true) => "write to",
                    (_, false) => "read of",
                };
                let allowed = if bit(0) { " (not allowed)" } else { "" };
                return write!(f, "page fault: {access} {:#x}{allowed}", crash.address);
            }
            Some(FaultKind::Protection) => "general protection fault",
            Some(FaultKind::InvalidOpcode) => "invalid instruction",
            Some(FaultKind::Divide) => "divide error",
            Some(FaultKind::NoFpu) => "floating-point or SSE instruction",
            Some(FaultKind::Debug) => "debug trap",
            // The program has said itself what is wrong.
            Some(FaultKind::Breakpoint) => "panic",
            Some(FaultKind::Alignment) => "misaligned access",
            Some(FaultKind::Other) | None => "unknown fault",
        })
    }
}
