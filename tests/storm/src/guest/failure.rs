//! Why a storm says nothing, or nothing good.

use core::fmt;

use ipc::abi::profile::Phase;
use ipc::abi::{Error, Syscall};

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The program was not given a handle that it needs.
    NotGiven(&'static str),
    /// The boot archive does not have the code of the processes.
    NoCode,
    /// A call to the kernel failed.
    Kernel(Syscall, Error),
    /// A CPU's ring is none.
    Ring(usize),
    /// The driver does not get to a phase.
    Phase(Phase),
    /// A process does not end.
    Ends,
    /// NMIs of a CPU that neither took a sample nor came late.
    Nmis { cpu: usize, nmis: u64, known: u64 },
    /// Records of a CPU that are not what was taken.
    Records {
        cpu: usize,
        records: u64,
        taken: u64,
    },
    /// A CPU that took no sample.
    None { cpu: usize },
    /// A CPU that did not take its tick.
    NoTick { cpu: usize },
    /// Pages on the program's account, before and after.
    Pages { before: u64, after: u64 },
    /// Samples that are wrong.
    Wrong(u64),
    /// Records that are none.
    Damaged(u64),
}

/// A call that failed.
pub const fn kernel(what: Syscall) -> impl FnOnce(Error) -> Failure {
    move |error| Failure::Kernel(what, error)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGiven(name) => write!(f, "it was not given {name}"),
            Self::NoCode => f.write_str("the boot archive does not have the code of the processes"),
            Self::Kernel(what, error) => write!(f, "{}: {error}", what.name()),
            Self::Ring(cpu) => write!(f, "the ring of cpu {cpu} is none"),
            Self::Phase(phase) => write!(f, "the driver does not get to {phase:?}"),
            Self::Ends => f.write_str("a process does not end"),
            Self::Nmis { cpu, nmis, known } => {
                write!(
                    f,
                    "cpu {cpu} took {nmis} NMIs, of which {known} are accounted for"
                )
            }
            Self::Records {
                cpu,
                records,
                taken,
            } => {
                write!(
                    f,
                    "cpu {cpu} took {taken} samples, its ring accounts for {records}"
                )
            }
            Self::None { cpu } => write!(f, "cpu {cpu} took no sample"),
            Self::NoTick { cpu } => write!(f, "cpu {cpu} took no tick"),
            Self::Pages { before, after } => {
                write!(f, "of {before} pages in use before, {after} are now")
            }
            Self::Wrong(samples) => write!(f, "{samples} samples are wrong"),
            Self::Damaged(records) => write!(f, "{records} records are damaged"),
        }
    }
}
