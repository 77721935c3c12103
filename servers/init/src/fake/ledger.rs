//! What the fake kernel knows, and what a test may do to it.

use ipc::abi::Rights;
use ipc::abi::exit::{CrashReport, ExitReason, ProcessStatus};

use super::handle::ears;
use crate::pci::fake::FakeBus;

/// What the kernel knows.
#[derive(Default)]
pub struct Ledger {
    /// Handles that are open in init.
    pub open: usize,
    /// Handles that may receive, by endpoint; there is no endpoint 0.
    pub(super) ears: Vec<usize>,
    /// Operations so far.
    pub operations: usize,
    /// The operation that fails, counted from 0.
    pub fail_at: Option<usize>,
    /// Processes by id, from 1; the first is init.
    pub processes: Vec<FakeProcess>,
    /// What was logged.
    pub log: Vec<String>,
    /// Endpoints that were flushed.
    pub flushed: usize,
    /// Signals to subscribers.
    pub signals: usize,
    /// Whether init ended the system.
    pub halted: bool,
    /// A process that ends while an endpoint is flushed.
    pub ends_at_flush: Option<u32>,
    /// A line that somebody else has.
    pub taken_line: Option<u32>,
    /// The PCI functions there are.
    pub bus: FakeBus,
    /// Time, in nanoseconds.
    pub now: u64,
}

/// A process, as the kernel sees it.
#[derive(Clone, Default)]
pub struct FakeProcess {
    pub name: String,
    pub status: ProcessStatus,
    pub started: bool,
    pub maps: Vec<(u64, u64, Rights)>,
    /// Handles that it was given.
    pub given: Vec<Given>,
    pub startup: Vec<u8>,
    pub priority: u8,
}

/// A handle in a process.
#[derive(Clone, Copy)]
pub struct Given {
    pub rights: Rights,
    /// The endpoint that it names; 0 if it is to something else.
    pub endpoint: usize,
}

impl Ledger {
    /// Whether nobody may receive at an endpoint: then every call there fails at once.
    pub fn is_dead(&self, endpoint: usize) -> bool {
        self.ears[endpoint] == 0
    }
    pub fn process(&mut self, pid: u32) -> &mut FakeProcess {
        &mut self.processes[pid as usize - 1]
    }
    /// Ends a process; its memory is back.
    pub fn end(&mut self, pid: u32, reason: ExitReason, code: u64) {
        for given in core::mem::take(&mut self.process(pid).given) {
            self.ears[given.endpoint] -= ears(given.rights);
        }
        let process = self.process(pid);
        process.status.reason = reason as u64;
        process.status.code = code;
        process.status.reclaimed = 1;
        process.status.crash = CrashReport {
            kind: 1,
            ..CrashReport::default()
        };
    }
}
