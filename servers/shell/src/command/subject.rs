//! The process that a command is about: found by its pid, and looked for again in the end.

use alloc::string::ToString;
use core::fmt;

use ipc::abi::Error;
use ipc::abi::exit::ExitReason;
use ipc::abi::inspect::ProcessInfo;
use ipc::proto::init;

use super::Context;
use super::argument::{self, NotAPid};
use crate::format::{MILLISECOND, Name};
use crate::inspect::in_use;
use crate::system::System;

/// What init gets to answer about a process that has ended, in nanoseconds.
const ANSWER_TIMEOUT: u64 = 500 * MILLISECOND;

/// The name of a process that the kernel does not know any more, if init still does.
pub(super) fn name_of_ended(system: &mut dyn System, pid: u32) -> Option<init::Name> {
    // One that was made just now lets us wait, but no longer than that.
    let until = system.now().saturating_add(ANSWER_TIMEOUT);
    Some(system.wait_until(pid, until).ok()?.name)
}

/// A process that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    /// Its slot.
    pub(super) slot: u64,
    /// What the kernel says of it.
    pub(super) info: ProcessInfo,
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum NoSubject<'a> {
    /// The word is no process id.
    Word(NotAPid<'a>),
    /// It has ended.
    Ended { pid: u64, name: init::Name },
    /// Nobody knows it.
    Unknown { pid: u64 },
    /// The kernel does not tell.
    Kernel(Error),
}

impl fmt::Display for NoSubject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(error) => error.fmt(f),
            Self::Ended { pid, name } => write!(f, "pid {pid} ({name}) has ended"),
            Self::Unknown { pid } => {
                write!(f, "pid {pid}: no such process; `ps` shows those that run")
            }
            Self::Kernel(error) => error.fmt(f),
        }
    }
}

impl Subject {
    /// The process that a word names.
    pub(super) fn find<'a>(system: &mut dyn System, word: &'a str) -> Result<Self, NoSubject<'a>> {
        let pid = argument::pid(word).map_err(NoSubject::Word)?;
        let slots = in_use(|slot| system.process_slot(slot)).map_err(NoSubject::Kernel)?;
        let found = (slots.into_iter()).find(|(_, info)| info.pid == u64::from(pid));
        match found {
            Some((slot, info)) if info.reason == ExitReason::Running as u64 => {
                Ok(Self { slot, info })
            }
            Some((_, info)) => Err(ended(&info)),
            None => Err(match name_of_ended(system, pid) {
                Some(name) => NoSubject::Ended {
                    pid: pid.into(),
                    name,
                },
                None => NoSubject::Unknown { pid: pid.into() },
            }),
        }
    }

    /// The process as it is now, if it still runs: what was read meanwhile was read of it.
    pub(super) fn again(self, system: &mut dyn System) -> Result<Self, NoSubject<'static>> {
        let now = system.process_slot(self.slot).map_err(NoSubject::Kernel)?;
        let same = now.filter(|now| now.pid == self.info.pid);
        match same.filter(|now| now.reason == ExitReason::Running as u64) {
            Some(info) => Ok(Self { info, ..self }),
            None => Err(ended(&self.info)),
        }
    }
}

impl Context<'_> {
    /// Does this with the process that the only argument names; else says what is wrong with the arguments.
    pub(super) fn with_subject(self, run: fn(Self, Subject) -> fmt::Result) -> fmt::Result {
        let word = match *self.args {
            [word] => word,
            [] => return self.missing("a pid"),
            [_, second, ..] => return self.too_many(second),
        };
        match Subject::find(self.system, word) {
            Ok(subject) => run(self, subject),
            Err(error) => self.fail(error),
        }
    }
}

fn ended(info: &ProcessInfo) -> NoSubject<'static> {
    NoSubject::Ended {
        pid: info.pid,
        name: init::Name::cut(&Name(&info.name).to_string()),
    }
}
