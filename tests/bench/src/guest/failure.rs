//! Why nothing can be measured.

use core::fmt;

use ipc::abi::{Error, Handle, Syscall};
use ipc::proto::CallError;
use ipc::proto::init::InitError;
use ipc::proto::profd::Refusal;
use sysroot::startup;

/// What is wrong.
#[derive(Debug)]
pub enum Failure {
    /// The machine has this many CPUs.
    Cpus(u64),
    /// So many more instructions were executed, and the counter advanced by so much.
    NotCounted {
        /// Executed.
        instructions: u64,
        /// Counted.
        counted: u64,
    },
    /// `tests/system.toml` does not give this program the handle.
    NotGiven(&'static str),
    /// This call of the kernel failed.
    Kernel(Syscall, Error),
    /// init refused.
    Init(CallError<InitError>),
    /// profd's library refused.
    Report(Refusal),
    /// This did not happen, so a figure would be of something else.
    NotDone(Effect),
    /// A sample has this many frames.
    Frames(usize),
}

/// What must come of what is measured, or of what the measuring needs.
#[derive(Clone, Copy, Debug)]
pub enum Effect {
    /// The server's answer has the words of the call.
    WordsBack,
    /// The server counts the bytes that were sent.
    PayloadSent,
    /// The server has the handle that was sent.
    HandleSent,
    /// The other thread had one turn in a round.
    OneTurn,
    /// A thread returned.
    Joined,
    /// The sample rings have the kernel's geometry.
    RingsOpen,
    /// The sample ring is whole.
    RingRead,
    /// The CPU stopped sampling.
    Disarmed,
    /// Each tick or NMI took a sample, all of as many frames.
    SamplesAlike,
    /// A path that is sampled takes no more than it and its samples.
    PathUnchanged,
    /// A sample was taken in the longest path.
    PathSampled,
    /// The second report is the first.
    ReportsAlike,
    /// A program exited with 0.
    ExitedWell,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WordsBack => "the server answers with the words that came",
            Self::PayloadSent => "the payload comes to the server",
            Self::HandleSent => "the handle comes to the server",
            Self::OneTurn => "the other thread has one turn",
            Self::Joined => "the thread returns",
            Self::RingsOpen => "the sample rings are the kernel's",
            Self::RingRead => "the sample ring is read",
            Self::Disarmed => "the CPU stops sampling",
            Self::SamplesAlike => "each tick or NMI takes a sample of as many frames",
            Self::PathUnchanged => {
                "a path that is sampled takes what it takes alone, and its samples"
            }
            Self::PathSampled => "the longest path is sampled",
            Self::ReportsAlike => "both reports are the same",
            Self::ExitedWell => "the program exits with 0",
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpus(cpus) => write!(f, "it measures on 1 CPU (--smp 1), not on {cpus}"),
            Self::NotCounted {
                instructions,
                counted,
            } => write!(
                f,
                "the time-stamp counter does not count instructions (--icount): {counted} for {instructions}"
            ),
            Self::NotGiven(name) => write!(f, "no handle `{name}` was given"),
            Self::Kernel(what, error) => write!(f, "{}: {error}", what.name()),
            Self::Init(error) => write!(f, "init: {error}"),
            Self::Report(refusal) => write!(f, "report: {refusal:?}"),
            Self::NotDone(what) => write!(f, "not done: {what}"),
            Self::Frames(frames) => write!(f, "a sample has {frames} frames"),
        }
    }
}

/// Turns the error of a kernel's call into a failure.
pub fn kernel(what: Syscall) -> impl Fn(Error) -> Failure {
    move |error| Failure::Kernel(what, error)
}

/// A handle that the program was given.
pub fn given(name: &'static str) -> Result<Handle, Failure> {
    startup::handle(name).ok_or(Failure::NotGiven(name))
}

/// Fails unless it happened.
pub fn ensure(done: bool, what: Effect) -> Result<(), Failure> {
    if done {
        Ok(())
    } else {
        Err(Failure::NotDone(what))
    }
}
