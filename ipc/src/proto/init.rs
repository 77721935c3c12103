//! The messages of init: start, watch and end programs, and hear of every start and end.
//!
//! init calls nobody, so anybody may call it. Who subscribes gives it a notification and fetches the events themselves when
//! that is signalled: a subscriber that is slow or dead costs init nothing.

use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

use super::{Text, TooLong};
use crate::abi;
use crate::abi::layout::{COMMAND_LINE_MAX, NAME_MAX};

mod ending;
mod event;

pub use ending::{Crash, Ending, ExitReport};
pub use event::{Event, Happening};

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

/// The boot command line: words with a blank between them. Each program that has settings there knows its own.
pub type CommandLine = Text<COMMAND_LINE_MAX>;

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
    /// The kernel refused.
    Kernel(abi::Error),
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
            Self::OutOfMemory => "out of memory or kernel objects",
            Self::TooManyPrograms => "too many programs run",
            Self::TooManyWait => "too many wait",
            Self::NoSuchProcess => "no such process",
            Self::NotHeld => "it is not held",
            Self::Ended => "it has ended",
            Self::Refused => "nothing works without it",
            Self::Kernel(error) => error.text(),
            Self::Damaged => "its file is damaged",
        })
    }
}

impl core::error::Error for InitError {}

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
    /// Gives the boot command line.
    9 ReadCommandLine = command_line(()) -> CommandLine;
}

#[cfg(test)]
mod tests;
