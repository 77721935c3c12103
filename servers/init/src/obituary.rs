//! How a server ended, as a line of the log.
//!
//! init calls nobody, so it cannot ask profd for names: addresses are as they are, and belong to the unstripped file.

use core::fmt;

use ipc::abi::exit::{BacktraceEnd, FaultKind};
use ipc::proto::init::{Crash, Ending, ExitReport};

/// A report as a line.
pub struct Obituary<'a>(pub &'a ExitReport);

impl fmt::Display for Obituary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        write!(f, "{} (pid {}) ", report.name, report.pid)?;
        match (report.ending, &report.crash) {
            (Ending::Exited, _) => write!(f, "ended with code {}", report.code),
            (Ending::Killed, _) => f.write_str("was killed"),
            (Ending::Faulted, Some(crash)) => write_crash(f, crash),
            (Ending::Faulted, None) => f.write_str("faulted"),
        }
    }
}

/// What it was, then where: the instruction, and each caller's return address.
fn write_crash(f: &mut fmt::Formatter<'_>, crash: &Crash) -> fmt::Result {
    match crash.fault() {
        Some(FaultKind::Breakpoint) => f.write_str("panicked at")?,
        Some(FaultKind::Page) => write!(f, "faulted (Page, {:#x}) at", crash.address)?,
        Some(fault) => write!(f, "faulted ({fault:?}) at")?,
        None => write!(f, "faulted ({}) at", crash.kind)?,
    }
    for (index, address) in crash.frames().enumerate() {
        let arrow = if index == 0 { "" } else { " <-" };
        write!(f, "{arrow} {address:#x}")?;
    }
    f.write_str(match crash.end() {
        BacktraceEnd::Outermost => "",
        BacktraceEnd::More => " <- ...",
        BacktraceEnd::Cut => " <- ?",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::abi::exit::CrashReport;
    use ipc::proto::init::Name;

    fn line(ending: Ending, kind: u64) -> String {
        let mut crash = CrashReport {
            kind,
            address: 0x10,
            frames: 2,
            end: BacktraceEnd::More as u64,
            ..CrashReport::default()
        };
        crash.backtrace[..2].copy_from_slice(&[0x40_1012, 0x40_2000]);
        let report = ExitReport {
            pid: 2,
            name: Name::cut("console"),
            ending,
            code: 7,
            crash: (ending == Ending::Faulted).then(|| (&crash).into()),
        };
        Obituary(&report).to_string()
    }

    #[test]
    fn a_line_says_how_it_ended_and_where() {
        assert_eq!(line(Ending::Exited, 0), "console (pid 2) ended with code 7");
        assert_eq!(line(Ending::Killed, 0), "console (pid 2) was killed");
        for (kind, how) in [
            (FaultKind::Breakpoint as u64, "panicked"),
            (FaultKind::Page as u64, "faulted (Page, 0x10)"),
            (FaultKind::Divide as u64, "faulted (Divide)"),
            (99, "faulted (99)"),
        ] {
            let expected = format!("console (pid 2) {how} at 0x401012 <- 0x402000 <- ...");
            assert_eq!(line(Ending::Faulted, kind), expected);
        }
    }
}
