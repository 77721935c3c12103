//! How a program ended, as a line of the log, and a second one if it was deep in calls.
//!
//! init calls nobody, so it cannot ask profd for names: addresses are as they are, and belong to the unstripped file.

use core::fmt;

use ipc::abi::exit::BacktraceEnd;
use ipc::proto::init::{Crash, Ending, ExitReport};

/// Frames in a line: with what stands before them it fits a line of the kernel log.
const FRAMES_MAX: usize = 8;

/// A report as a line or two.
pub struct Obituary<'a>(pub &'a ExitReport);

impl fmt::Display for Obituary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        write!(f, "{} (pid {})", report.name, report.pid)?;
        match (report.ending, &report.crash) {
            (Ending::Exited, _) => write!(f, " ended with code {}", report.code),
            (Ending::Killed, _) => f.write_str(" was killed"),
            (Ending::Faulted, Some(crash)) => write_crash(f, crash),
            (Ending::Faulted, None) => f.write_str(" faulted"),
        }
    }
}

/// What it was, then where: the instruction, and each caller's return address.
fn write_crash(f: &mut fmt::Formatter<'_>, crash: &Crash) -> fmt::Result {
    write!(f, ": {crash} at")?;
    for (index, (address, times)) in crash.frames().enumerate() {
        f.write_str(match index {
            0 => " ",
            _ if index.is_multiple_of(FRAMES_MAX) => "\n  <- ",
            _ => " <- ",
        })?;
        write!(f, "{address:#x}")?;
        if times > 1 {
            write!(f, " ({times} times)")?;
        }
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
    use ipc::abi::exit::{BACKTRACE_MAX, CrashReport, FaultKind};
    use ipc::abi::layout::{LOG_LINE_MAX, USER_END};
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
            (FaultKind::Breakpoint as u64, "panic"),
            (FaultKind::Page as u64, "page fault: read of 0x10"),
            (99, "unknown fault"),
        ] {
            let expected = format!("console (pid 2): {how} at 0x401012 <- 0x402000 <- ...");
            assert_eq!(line(Ending::Faulted, kind), expected);
        }
    }

    fn faulted(name: &str, pid: u32, frames: [u64; BACKTRACE_MAX]) -> String {
        let crash = CrashReport {
            kind: FaultKind::Page as u64,
            error_code: 1,
            address: 0xffff_8000_0000_0000,
            frames: BACKTRACE_MAX as u64,
            backtrace: frames,
            end: BacktraceEnd::Cut as u64,
            ..CrashReport::default()
        };
        let report = ExitReport {
            pid,
            name: Name::cut(name),
            ending: Ending::Faulted,
            code: 0,
            crash: Some((&crash).into()),
        };
        Obituary(&report).to_string()
    }

    #[test]
    fn the_longest_fits_two_lines_of_the_log() {
        const LINE_MAX: usize = LOG_LINE_MAX - "[99999.999999] init: \n".len();
        let frames = core::array::from_fn(|index| USER_END - index as u64);
        let text = faulted("anameofsixteenby", u32::MAX, frames);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines.iter().all(|line| line.len() <= LINE_MAX), "{text}");
        assert!(lines[1].starts_with("  <- 0x"), "{text}");
    }

    #[test]
    fn a_recursion_is_one_frame() {
        let text = faulted("crash", 7, [0x40_2000; BACKTRACE_MAX]);
        assert!(
            text.ends_with(" at 0x402000 <- 0x402000 (15 times) <- ?"),
            "{text}"
        );
    }
}
