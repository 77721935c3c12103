//! How a process ended, and what the thread did that faulted.

use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

use super::Name;
use crate::abi;
use crate::abi::exit::{
    BACKTRACE_MAX, BacktraceEnd, ExitReason, FAULT_FETCH, FAULT_PRESENT, FAULT_WRITE, FaultKind,
};
use crate::abi::startup::{STACK_BASE, STACK_GUARD};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum Ending {
    /// It ended itself.
    Exited,
    /// Someone killed it.
    Killed,
    /// A thread faulted.
    Faulted,
}

impl Ending {
    /// From the kernel's reason; `None` while the process runs.
    #[must_use]
    pub const fn from_reason(reason: u64) -> Option<Self> {
        match ExitReason::from_raw(reason) {
            Some(ExitReason::Exited) => Some(Self::Exited),
            Some(ExitReason::Killed) => Some(Self::Killed),
            Some(ExitReason::Faulted) => Some(Self::Faulted),
            Some(ExitReason::Running) | None => None,
        }
    }
}

/// What a process left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct ExitReport {
    /// Process.
    pub pid: u32,
    /// Its name.
    pub name: Name,
    /// How it ended.
    pub ending: Ending,
    /// Exit code.
    pub code: u64,
    /// If it faulted: where and with what.
    pub crash: Option<Crash>,
    /// Time its threads ran, in nanoseconds.
    pub cpu_ns: u64,
}

/// Registers and backtrace of the thread that faulted. See [`abi::exit::CrashReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Crash {
    /// [`FaultKind`] number.
    pub kind: u8,
    /// Thread.
    pub tid: u32,
    /// Hardware error code.
    pub error_code: u64,
    /// Address of a page fault.
    pub address: u64,
    /// RIP, RSP, RFLAGS, RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8 to R15.
    pub registers: [u64; 18],
    /// Frames in `backtrace`.
    pub frames: u8,
    /// Return addresses; the first is RIP.
    pub backtrace: [u64; BACKTRACE_MAX],
    /// [`BacktraceEnd`] number.
    pub end: u8,
}

impl Crash {
    /// What the thread did, if this version knows it.
    #[must_use]
    pub const fn fault(&self) -> Option<FaultKind> {
        FaultKind::from_raw(self.kind as u64)
    }
    /// How the backtrace ended; what this version does not know is missing.
    #[must_use]
    pub fn end(&self) -> BacktraceEnd {
        BacktraceEnd::from_raw(u64::from(self.end)).unwrap_or(BacktraceEnd::Cut)
    }
    /// Where the thread was, then the return addresses: each with how often it comes in a row, as in a recursion.
    pub fn frames(&self) -> impl Iterator<Item = (u64, usize)> {
        let frames = usize::from(self.frames).min(BACKTRACE_MAX);
        let (at, callers) = self.backtrace[..frames].split_at(frames.min(1));
        let callers = callers.chunk_by(|one, next| one == next);
        at.chunks(1)
            .chain(callers)
            .map(|equal| (equal[0], equal.len()))
    }
}

/// What the thread did. Where it did that is not said.
impl core::fmt::Display for Crash {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self.fault() {
            Some(FaultKind::Page) => return self.page_fault(f),
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

impl Crash {
    fn page_fault(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [present, write, fetch] =
            [FAULT_PRESENT, FAULT_WRITE, FAULT_FETCH].map(|bit| self.error_code & bit != 0);
        let access = if write { "write" } else { "read" };
        // Only the first thread's guard page is at a known place. Nothing else is there, and what misses it by more is not told
        // from any other wrong address.
        if (STACK_GUARD..STACK_BASE).contains(&self.address) && !present && !fetch {
            return write!(f, "stack overflow (page fault: {access})");
        }
        f.write_str("page fault: ")?;
        match (fetch, write) {
            // The address is the instruction's own.
            (true, _) => f.write_str("execution")?,
            (_, true) => write!(f, "write to {:#x}", self.address)?,
            (_, false) => write!(f, "read of {:#x}", self.address)?,
        }
        f.write_str(if present { " (not allowed)" } else { "" })
    }
}

impl From<&abi::exit::CrashReport> for Crash {
    fn from(report: &abi::exit::CrashReport) -> Self {
        Self {
            kind: u8::try_from(report.kind).unwrap_or(FaultKind::Other as u8),
            tid: report.tid as u32,
            error_code: report.error_code,
            address: report.address,
            registers: report.registers,
            frames: report.frames.min(BACKTRACE_MAX as u64) as u8,
            backtrace: report.backtrace,
            end: u8::try_from(report.end).unwrap_or(BacktraceEnd::Cut as u8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_says_what_the_thread_did() {
        let crash = |kind: FaultKind, error_code, address| {
            let kind = kind as u64;
            let report = abi::exit::CrashReport {
                kind,
                error_code,
                address,
                ..Default::default()
            };
            Crash::from(&report).to_string()
        };
        let page = |error_code, address| crash(FaultKind::Page, error_code, address);
        assert_eq!(page(0b100, 0x10), "page fault: read of 0x10");
        assert_eq!(page(0b110, 0), "page fault: write to 0x0");
        assert_eq!(
            page(0b101, 0xffff_8000_0000_0000),
            "page fault: read of 0xffff800000000000 (not allowed)"
        );
        assert_eq!(page(0b10100, 0x10), "page fault: execution");
        assert_eq!(page(0b10101, 0x10), "page fault: execution (not allowed)");
        assert_eq!(crash(FaultKind::Divide, 0, 0), "divide error");
        assert_eq!(crash(FaultKind::Breakpoint, 0, 0), "panic");
    }

    #[test]
    fn equal_callers_in_a_row_are_one() {
        let mut report = abi::exit::CrashReport {
            frames: 6,
            ..Default::default()
        };
        report.backtrace[..6].copy_from_slice(&[5, 5, 5, 7, 5, 9]);
        let frames =
            |report: &abi::exit::CrashReport| Crash::from(report).frames().collect::<Vec<_>>();
        assert_eq!(frames(&report), [(5, 1), (5, 2), (7, 1), (5, 1), (9, 1)]);
        report.frames = 0;
        assert_eq!(frames(&report), []);
        report.frames = u64::MAX;
        assert_eq!(frames(&report).last(), Some(&(0, BACKTRACE_MAX - 6)));
    }

    #[test]
    fn only_what_reaches_below_the_stack_is_an_overflow_of_it() {
        let overflows = |error_code, address| {
            let report = abi::exit::CrashReport {
                kind: FaultKind::Page as u64,
                error_code,
                address,
                ..Default::default()
            };
            Crash::from(&report)
                .to_string()
                .starts_with("stack overflow (page fault: ")
        };
        assert!(overflows(0b110, STACK_GUARD) && overflows(0b100, STACK_BASE - 1));
        assert!(!overflows(0b110, STACK_GUARD - 1) && !overflows(0b110, STACK_BASE));
        assert!(!overflows(0b10100, STACK_GUARD), "a jump there");
    }
}
