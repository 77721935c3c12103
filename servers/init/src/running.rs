//! A process that init has launched, until it has ended and its memory is back.

use alloc::vec::Vec;

use ipc::abi::exit::ProcessStatus;
use ipc::proto::init::{Ending, ExitReport, Name, Wait};
use ipc::proto::{Parked, Responder};

use crate::machine::Machine;

/// A process that runs, or is held.
pub(crate) struct Running<M: Machine, P: Responder> {
    pub(crate) pid: u32,
    pub(crate) name: Name,
    /// Index of its entry.
    pub(crate) program: usize,
    pub(crate) process: M::Process,
    /// Pages that it may use, which are taken from init's.
    pub(crate) quota_pages: u64,
    /// Its first thread, as long as it is held.
    pub(crate) held: Option<M::Handle>,
    /// When it was launched, in nanoseconds.
    pub(crate) since: u64,
    /// Badge of who started it; 0 for init.
    pub(crate) starter: u64,
    pub(crate) waiters: Vec<Parked<P, Wait>>,
}

impl<M: Machine, P: Responder> Running<M, P> {
    /// The report of its end, once it has ended and its memory is back.
    pub(crate) fn report(&self, status: &ProcessStatus) -> Option<ExitReport> {
        let ending = Ending::from_reason(status.reason)?;
        (status.reclaimed == 1).then(|| ExitReport {
            pid: self.pid,
            name: self.name.clone(),
            ending,
            code: status.code,
            crash: (ending == Ending::Faulted).then(|| (&status.crash).into()),
            cpu_ns: status.cpu_ns,
        })
    }
}
