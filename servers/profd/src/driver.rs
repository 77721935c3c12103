//! What profd needs of the profiling driver, so that tests can put a hostile one in its place.

use ipc::abi::Error;
use ipc::abi::profile::{EventSpec, ProfilerStatus, SLOT_WORDS, Source, SourceRequest};

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

    /// CPUs that have a ring.
    fn cpus(&self) -> usize;

    /// Sequence of the last record of a CPU; 0 before the first.
    fn head(&self, cpu: usize) -> u64;

    /// Copies the record with this sequence to `slot`.
    fn read(&self, cpu: usize, sequence: u64, slot: &mut [u64; SLOT_WORDS]) -> Slot;
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// It was copied whole.
    Whole,
    /// A later record has its slot, or is taking it.
    Overwritten,
    /// It is not written yet.
    Pending,
}
