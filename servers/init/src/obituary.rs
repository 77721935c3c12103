//! How a program ended, as lines of the log: what happened and where, then each caller on a line of its own.
//!
//! init calls nobody, so it asks profd for no names: it finds them in the symbol tables of the boot archive, also those of
//! profd itself. Without a table, addresses are as they are, and belong to the unstripped file.

use core::fmt;

use ipc::abi::exit::{BacktraceEnd, FaultKind};
use ipc::backtrace::reports_panics;
use ipc::proto::init::{Crash, Ending, ExitReport};
use ipc::symtab::{Symbol, SymbolTable};

/// A report as lines.
pub struct Obituary<'a> {
    /// How it ended.
    pub report: &'a ExitReport,
    /// The functions of its image, if they are known.
    pub symbols: Option<SymbolTable<'a>>,
}

impl fmt::Display for Obituary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report;
        write!(f, "{} (pid {})", report.name, report.pid)?;
        match (report.ending, &report.crash) {
            (Ending::Exited, _) => write!(f, " ended with code {}", report.code),
            (Ending::Killed, _) => f.write_str(" was killed"),
            (Ending::Faulted, Some(crash)) => self.write_crash(f, crash),
            (Ending::Faulted, None) => f.write_str(" faulted"),
        }
    }
}

impl Obituary<'_> {
    /// What it was, then where: the instruction, and each caller's return address. A panic begins where it was found out.
    fn write_crash(&self, f: &mut fmt::Formatter<'_>, crash: &Crash) -> fmt::Result {
        write!(f, ": {crash} at ")?;
        let panicked = crash.fault() == Some(FaultKind::Breakpoint);
        let frames = crash.frames().enumerate();
        let frames = frames
            .map(|(depth, (address, times))| (self.place(address, depth > 0), times))
            .skip_while(|(place, _)| panicked && place.only_reports());
        for (index, (place, times)) in frames.enumerate() {
            if index > 0 {
                f.write_str("\n  <- ")?;
            }
            write!(f, "{place}")?;
            if times > 1 {
                write!(f, " ({times} times)")?;
            }
        }
        f.write_str(match crash.end() {
            BacktraceEnd::Outermost => "",
            BacktraceEnd::More => "\n  <- ...",
            BacktraceEnd::Cut => "\n  <- ?",
        })
    }

    fn place(&self, address: u64, is_return: bool) -> Place<'_> {
        let lookup = if is_return {
            SymbolTable::lookup_return
        } else {
            SymbolTable::lookup
        };
        Place {
            image: self.report.name.as_str(),
            address,
            symbol: self
                .symbols
                .as_ref()
                .and_then(|table| lookup(table, address)),
        }
    }
}

/// An address of a program.
struct Place<'a> {
    image: &'a str,
    address: u64,
    symbol: Option<Symbol<'a>>,
}

impl Place<'_> {
    fn only_reports(&self) -> bool {
        self.symbol
            .is_some_and(|symbol| reports_panics(symbol.name))
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { image, address, .. } = self;
        match self.symbol {
            Some(Symbol { name, offset }) => write!(f, "{image}`{name}+{offset:#x}"),
            None => write!(f, "{image}`{address:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::abi::exit::{BACKTRACE_MAX, CrashReport};
    use ipc::digest::digest;
    use ipc::proto::init::Name;
    use ipc::symtab::MAGIC;

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
            cpu_ns: 0,
        };
        bare(&report)
    }

    fn bare(report: &ExitReport) -> String {
        let symbols = None;
        Obituary { report, symbols }.to_string()
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
            let expected = format!(
                "console (pid 2): {how} at console`0x401012\n  <- console`0x402000\n  <- ..."
            );
            assert_eq!(line(Ending::Faulted, kind), expected);
        }
    }

    /// A table of functions of 16 bytes, from this address on.
    fn table(base: u64, names: &[&str]) -> Vec<u8> {
        let mut body = Vec::new();
        let mut start = 0;
        for (index, name) in names.iter().enumerate() {
            for number in [16 * index as u32, 16, start, name.len() as u32] {
                body.extend(number.to_le_bytes());
            }
            start += name.len() as u32;
        }
        body.extend(names.concat().bytes());
        let mut bytes = MAGIC.to_vec();
        bytes.extend(base.to_le_bytes());
        bytes.extend((names.len() as u32).to_le_bytes());
        bytes.extend(start.to_le_bytes());
        bytes.extend(digest(&body).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn named(kind: FaultKind, backtrace: &[u64]) -> String {
        let bytes = table(0x40_0000, &["core::panicking::panic", "inner", "main"]);
        let mut crash = CrashReport {
            kind: kind as u64,
            frames: backtrace.len() as u64,
            end: BacktraceEnd::Outermost as u64,
            ..CrashReport::default()
        };
        crash.backtrace[..backtrace.len()].copy_from_slice(backtrace);
        let report = ExitReport {
            pid: 7,
            name: Name::cut("crash"),
            ending: Ending::Faulted,
            code: 0,
            crash: Some((&crash).into()),
            cpu_ns: 0,
        };
        let symbols = SymbolTable::parse(&bytes).ok();
        Obituary {
            report: &report,
            symbols,
        }
        .to_string()
    }

    #[test]
    fn names_are_found_and_a_return_address_belongs_to_the_call_before_it() {
        assert_eq!(
            named(FaultKind::Page, &[0x40_0010, 0x40_0020, 0x50_0000]),
            "crash (pid 7): page fault: read of 0x0 at crash`inner+0x0\n  <- crash`inner+0x10\n  <- crash`0x500000"
        );
    }

    #[test]
    fn a_panic_begins_where_it_was_found_out() {
        assert_eq!(
            named(FaultKind::Breakpoint, &[0x40_0003, 0x40_0015, 0x40_0024]),
            "crash (pid 7): panic at crash`inner+0x5\n  <- crash`main+0x4"
        );
    }

    #[test]
    fn a_recursion_is_one_frame() {
        assert_eq!(
            named(FaultKind::Breakpoint, &[0x40_0015; BACKTRACE_MAX]),
            "crash (pid 7): panic at crash`inner+0x5\n  <- crash`inner+0x5 (15 times)"
        );
    }
}
