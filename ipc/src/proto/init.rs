//! The messages of init: start, watch and end programs, and hear of every start and end.
//!
//! init calls nobody, so anybody may call it. Who subscribes gives it a notification and fetches the events themselves when
//! that is signalled: a subscriber that is slow or dead costs init nothing.

use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

use super::{Text, TooLong};
use crate::abi;
use crate::abi::exit::{
    BACKTRACE_MAX, BacktraceEnd, ExitReason, FAULT_FETCH, FAULT_PRESENT, FAULT_WRITE, FaultKind,
};
use crate::abi::layout::NAME_MAX;
use crate::abi::startup::{STACK_BASE, STACK_GUARD};

/// Most bytes of a program's arguments, each with a NUL behind it.
pub const ARGS_MAX: usize = 1024;
/// Longest name of a file in the boot archive.
pub const FILE_MAX: usize = 32;
/// Bytes kept of a build-id: those of a SHA-1.
pub const BUILD_ID_MAX: usize = 20;

/// Most processes that run at once, beside init.
pub const RUNNING_MAX: usize = 96;

/// Name of a program.
pub type Name = Text<NAME_MAX>;

/// Arguments of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Args(Text<ARGS_MAX>);

impl Args {
    /// No arguments.
    #[must_use]
    pub const fn new() -> Self {
        Self(Text::new())
    }
    /// Adds one: whole, or not at all.
    ///
    /// # Errors
    /// All together would be too long, or it has a NUL in it.
    pub fn push(&mut self, arg: &str) -> Result<(), TooLong> {
        use core::fmt::Write;
        if arg.contains('\0') || self.0.len() + arg.len() + 1 > ARGS_MAX {
            return Err(TooLong);
        }
        write!(self.0, "{arg}\0").map_err(|_| TooLong)
    }
    /// Each argument.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split_terminator('\0')
    }
}

/// Asks for a program to be started. With the call may go an endpoint handle that speaks `stream`: it becomes the
/// program's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Spawn {
    /// A program with an entry in the configuration, or one in the boot archive's `bin/`.
    pub program: Name,
    /// Its arguments.
    pub args: Args,
    /// Do not let it run before `release`.
    pub held: bool,
}

/// Why init refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum InitError {
    /// No program of this name.
    NoSuchProgram,
    /// The program's file is not one that can be loaded.
    BadImage,
    /// A server of which there is one; it runs already.
    AlreadyRuns,
    /// The arguments do not fit the startup page.
    ArgsTooLong,
    /// init's own memory quota, from which the program's is taken, is used up.
    QuotaExceeded,
    /// The machine has no memory for it.
    OutOfMemory,
    /// As many programs run as can.
    TooManyPrograms,
    /// As many callers wait as can.
    TooManyWait,
    /// No such process; one that ended a while ago is forgotten.
    NoSuchProcess,
    /// The process is not held.
    NotHeld,
    /// The process has ended.
    Ended,
    /// To kill init: nothing works without it.
    Refused,
    /// The kernel refused; the number is that of an [`abi::Error`].
    Kernel(u8),
    /// The program's file is not what was put into the boot archive.
    Damaged,
}

impl core::fmt::Display for InitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NoSuchProgram => "no such program",
            Self::BadImage => "its file cannot be loaded",
            Self::AlreadyRuns => "there is only one, and it runs",
            Self::ArgsTooLong => "too many or too long arguments",
            Self::QuotaExceeded => "memory quota used up",
            Self::OutOfMemory => "out of memory",
            Self::TooManyPrograms => "too many programs run",
            Self::TooManyWait => "too many wait",
            Self::NoSuchProcess => "no such process",
            Self::NotHeld => "it is not held",
            Self::Ended => "it has ended",
            Self::Refused => "nothing works without it",
            Self::Kernel(number) => match abi::Error::from_raw(u64::from(*number)) {
                Some(error) => error.text(),
                None => "refused by the kernel",
            },
            Self::Damaged => "its file is damaged",
        })
    }
}

impl core::error::Error for InitError {}

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
        const EXITED: u64 = ExitReason::Exited as u64;
        const KILLED: u64 = ExitReason::Killed as u64;
        const FAULTED: u64 = ExitReason::Faulted as u64;
        match reason {
            EXITED => Some(Self::Exited),
            KILLED => Some(Self::Killed),
            FAULTED => Some(Self::Faulted),
            _ => None,
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

/// One process, as `ps` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct ProcessInfo {
    /// Process.
    pub pid: u32,
    /// Its name.
    pub name: Name,
    /// State of its most active thread: an [`abi::info::ThreadState`] number.
    pub state: u8,
    /// CPU of its running thread.
    pub cpu: Option<u32>,
    /// Threads.
    pub threads: u32,
    /// Time its threads ran, in nanoseconds.
    pub cpu_ns: u64,
    /// Pages in use, page tables included.
    pub pages: u32,
    /// Pages it may use.
    pub quota_pages: u32,
}

/// Something that happened to a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Event {
    /// Position of the event; they are counted from 0.
    pub position: u64,
    /// When it happened: a time-stamp that is not later than the process's first instruction, or not earlier than its last.
    pub tsc: u64,
    /// Process.
    pub pid: u32,
    /// What happened.
    pub what: Happening,
}

/// See [`Event`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum Happening {
    /// It was made; held or not, it has run no instruction yet.
    Started {
        /// Name of the process.
        name: Name,
        /// File in the boot archive.
        file: Text<FILE_MAX>,
        /// Number of the image, as samples carry it: one for each file, never another's.
        image: u32,
        /// Build-id of the file; zero if it has none.
        build_id: [u8; BUILD_ID_MAX],
        /// Difference between addresses in the process and in the file.
        load_bias: u64,
    },
    /// It ended.
    Ended {
        /// How.
        ending: Ending,
        /// Exit code.
        code: u64,
    },
}

crate::protocol! {
    error InitError;
    /// Starts a program; answers its process id.
    1 SpawnProgram = spawn(Spawn, handles Option<H>) -> u32;
    /// Lets a held process run.
    2 Release = release(u32) -> ();
    /// Answers when the process has ended and its memory is back; at once if that was a short while ago.
    3 Wait = wait(u32) -> ExitReport;
    /// Ends a process.
    4 Kill = kill(u32) -> ();
    /// Gives the process with the lowest id that is at least this; none if there is none.
    5 Next = next(u32) -> Option<ProcessInfo>;
    /// Signals bit 0 of the notification at each event from now on. Replaces the caller's last one.
    6 Subscribe = subscribe((), handles [H; 1]) -> ();
    /// Gives the first event that is kept and whose position is at least this; none if there is none.
    7 NextEvent = next_event(u64) -> Option<Event>;
    /// Gives the first program that `spawn` can start, by name, behind this one; none if there is none.
    8 NextProgram = next_program(Name) -> Option<Name>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
        let mut buffer = [0; 2048];
        postcard::to_slice(value, &mut buffer).unwrap().to_vec()
    }

    fn name(text: &str) -> Name {
        Name::try_from(text).unwrap()
    }

    #[test]
    fn args_are_kept_apart() {
        let mut args = Args::new();
        for arg in ["60", "", "a b"] {
            args.push(arg).unwrap();
        }
        assert!(args.iter().eq(["60", "", "a b"]));
        assert_eq!(args.push("a\0b"), Err(TooLong));
        assert_eq!(args.push(&"x".repeat(ARGS_MAX)), Err(TooLong));
        assert_eq!(args.iter().count(), 3);
        assert_eq!(Args::new().iter().count(), 0);
    }

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

    #[test]
    fn wire_bytes_of_requests_are_pinned() {
        let mut args = Args::new();
        args.push("60").unwrap();
        let spawn = Spawn {
            program: name("shares"),
            args,
            held: true,
        };
        assert_eq!(bytes(&spawn), b"\x06shares\x0360\0\x01");
        assert_eq!(bytes(&300_u32), [0xac, 2]);
        assert_eq!(
            OPERATIONS,
            [
                (1, "spawn"),
                (2, "release"),
                (3, "wait"),
                (4, "kill"),
                (5, "next"),
                (6, "subscribe"),
                (7, "next_event"),
                (8, "next_program"),
            ]
        );
    }

    #[test]
    fn wire_bytes_of_answers_are_pinned() {
        let report = ExitReport {
            pid: 7,
            name: name("ab"),
            ending: Ending::Faulted,
            code: 300,
            crash: None,
            cpu_ns: 128,
        };
        assert_eq!(bytes(&report), b"\x07\x02ab\x02\xac\x02\x00\x80\x01");
        let crash = Crash::from(&abi::exit::CrashReport {
            kind: 4,
            tid: 9,
            frames: 99,
            end: 1,
            ..Default::default()
        });
        assert_eq!(crash.fault(), Some(FaultKind::Divide));
        let mut expected = vec![4, 9, 0, 0];
        expected.extend([0; 18]);
        expected.push(16);
        expected.extend([0; 16]);
        expected.push(1);
        assert_eq!(bytes(&crash), expected);
        let info = ProcessInfo {
            pid: 7,
            name: name("ab"),
            state: 2,
            cpu: Some(1),
            threads: 3,
            cpu_ns: 128,
            pages: 5,
            quota_pages: 6,
        };
        assert_eq!(bytes(&info), b"\x07\x02ab\x02\x01\x01\x03\x80\x01\x05\x06");
    }

    #[test]
    fn wire_bytes_of_events_are_pinned() {
        let started = Event {
            position: 1,
            tsc: 2,
            pid: 3,
            what: Happening::Started {
                name: name("ab"),
                file: Text::cut("bin/ab"),
                image: 4,
                build_id: [5; BUILD_ID_MAX],
                load_bias: 0,
            },
        };
        let mut expected = b"\x01\x02\x03\x00\x02ab\x06bin/ab\x04".to_vec();
        expected.extend([5; BUILD_ID_MAX]);
        expected.push(0);
        assert_eq!(bytes(&started), expected);
        let ended = Happening::Ended {
            ending: Ending::Killed,
            code: 1,
        };
        assert_eq!(bytes(&ended), [1, 1, 1]);
    }

    #[test]
    fn wire_numbers_of_errors_are_pinned() {
        let errors = [
            InitError::NoSuchProgram,
            InitError::BadImage,
            InitError::AlreadyRuns,
            InitError::ArgsTooLong,
            InitError::QuotaExceeded,
            InitError::OutOfMemory,
            InitError::TooManyPrograms,
            InitError::TooManyWait,
            InitError::NoSuchProcess,
            InitError::NotHeld,
            InitError::Ended,
            InitError::Refused,
        ];
        for (number, error) in errors.iter().enumerate() {
            assert_eq!(bytes(error), [number as u8]);
        }
        assert_eq!(bytes(&InitError::Kernel(3)), [12, 3]);
        assert_eq!(bytes(&InitError::Damaged), [13]);
        assert_eq!(InitError::Kernel(30).to_string(), "timed out");
    }
}
