//! What profd needs of the profiling driver, so that tests can put a hostile one in its place.

use ipc::abi::Error;
use ipc::abi::monitor::MonitorInfo;
use ipc::abi::profile::{EventSpec, ProfilerStatus, Source, SourceRequest};
use sample_ring::Sample;

/// The driver, through its handle and its rings.
pub trait Driver {
    /// Arms every CPU at its next tick, and says which source was taken.
    ///
    /// # Errors
    /// `Unsupported`: there is no such source. Others are the kernel's.
    fn start(&mut self, source: SourceRequest, event: EventSpec) -> Result<Source, Error>;

    /// Disarms every CPU at its next tick.
    ///
    /// # Errors
    /// The kernel's.
    fn stop(&mut self) -> Result<(), Error>;

    /// What the driver does, and everything that it counted.
    ///
    /// # Errors
    /// The kernel's.
    fn status(&mut self) -> Result<ProfilerStatus, Error>;

    /// What a CPU's performance monitor claims, and what became of that.
    ///
    /// # Errors
    /// `NotFound`: there is no such CPU. Others are the kernel's.
    fn monitor(&mut self, cpu: u64) -> Result<MonitorInfo, Error>;

    /// Passes over everything that is in the rings, and forgets the losses.
    fn skip(&mut self);

    /// Hands every new record to `sink`: at most one ring's worth for each CPU, so it ends however fast records come.
    fn drain(&mut self, sink: &mut dyn FnMut(&Sample));

    /// Records that could not be handed out since the last skip.
    fn losses(&self) -> Losses;
}

/// Records that were taken and could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Later records replaced them before they were read.
    pub overwritten: u64,
    /// They do not hold together.
    pub corrupt: u64,
}
