//! What the kernel tells of itself, as commands see it. Apart from [`System`](crate::system::System), because these only look.
//!
//! Most of it is slots of pools: a slot that is in use has a record, another has none, and past the last one is
//! [`Error::NotFound`]. Slots are read one after the other while the system goes on, so a command checks in the end that what it
//! tells of was there all the while.

use alloc::vec::Vec;

use ipc::abi::Error;
use ipc::abi::inspect::{
    InterruptInfo, LineInfo, MappingInfo, PageInfo, ProcessInfo, StackInfo, StackKind, ThreadInfo,
};
use ipc::abi::layout::MAPPINGS_MAX;
use ipc::abi::trace::TraceRecord;

/// How often a command reads again what changed while it was read, before it makes do with that or says so.
pub const LOOKS: usize = 4;

/// Part of a CPU's trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracePart {
    /// The records.
    pub records: Vec<TraceRecord>,
    /// Position behind them, to go on from.
    pub next: u64,
    /// Records between the position asked for and these that are no longer kept.
    pub lost: u64,
}

/// What the kernel tells of itself. All errors are the kernel's.
#[expect(clippy::missing_errors_doc, reason = "said once, above")]
pub trait Inspect {
    /// The process in a slot.
    fn process_slot(&mut self, slot: u64) -> Result<Option<ProcessInfo>, Error>;
    /// The thread in a slot.
    fn thread_slot(&mut self, slot: u64) -> Result<Option<ThreadInfo>, Error>;
    /// Mapping number `n`, less than [`MAPPINGS_MAX`], of the process in a slot.
    fn mapping(&mut self, process: u64, n: u64) -> Result<Option<MappingInfo>, Error>;
    /// A page of that mapping, counted from its beginning.
    fn page(&mut self, process: u64, n: u64, page: u32) -> Result<Option<PageInfo>, Error>;
    /// A stack of a CPU.
    fn stack(&mut self, cpu: u64, which: StackKind) -> Result<StackInfo, Error>;
    /// What a CPU was interrupted by.
    fn interrupts(&mut self, cpu: u64) -> Result<InterruptInfo, Error>;
    /// An interrupt line.
    fn line(&mut self, line: u64) -> Result<Option<LineInfo>, Error>;
    /// Whether events are traced.
    fn is_traced(&mut self) -> Result<bool, Error>;
    /// Turns tracing on or off.
    fn set_trace(&mut self, on: bool) -> Result<(), Error>;
    /// A CPU's trace records behind a position.
    fn trace(&mut self, cpu: u64, position: u64) -> Result<TracePart, Error>;
    /// Nanoseconds since boot at a time-stamp.
    fn time_at(&self, tsc: u64) -> u64;
}

/// The records of all slots that are in use, with the slots' numbers.
///
/// # Errors
/// Those of `read`, but for the one past the last slot.
pub fn in_use<T>(
    mut read: impl FnMut(u64) -> Result<Option<T>, Error>,
) -> Result<Vec<(u64, T)>, Error> {
    let mut found = Vec::new();
    for slot in 0.. {
        match read(slot) {
            Ok(record) => found.extend(record.map(|record| (slot, record))),
            Err(Error::NotFound) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The mappings of the process in a slot, with their numbers.
///
/// # Errors
/// The kernel's.
pub fn mappings(
    system: &mut (impl Inspect + ?Sized),
    process: u64,
) -> Result<Vec<(u64, MappingInfo)>, Error> {
    in_use(|n| match n {
        0..MAPPINGS_MAX => system.mapping(process, n),
        _ => Err(Error::NotFound),
    })
}
