//! The trace: what each CPU did, event by event. It is off until `trace_control` turns it on.
//!
//! Each CPU has a ring of its own, of which the newest record overwrites the oldest. Records are numbered from 1, by CPU and since boot.
//! `trace_read` takes the number of the last record that is known and copies those behind it: `next - position` is always the
//! number of records copied plus the number of those that were lost.

use super::message::PAYLOAD_MAX;
use super::numbered::numbered;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Records that a CPU's ring holds.
pub const TRACE_RECORDS: usize = 1024;
/// Most records that one `trace_read` copies.
pub const TRACE_READ_MAX: usize = PAYLOAD_MAX / size_of::<TraceRecord>();
/// Instead of a position: none is known, and only what comes from now on is wanted.
pub const TRACE_NEWEST: u64 = u64::MAX;

/// The trace as a whole.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct TraceInfo {
    /// Whether it is on.
    pub on: u64,
}

/// An event.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct TraceRecord {
    /// Its number.
    pub sequence: u64,
    /// TSC of its CPU.
    pub tsc: u64,
    /// A [`TraceKind`] in the lower half; in the upper half what that calls its detail.
    pub event: u64,
    /// Process id in the lower half, thread id in the upper half; 0 for none.
    pub who: u64,
    /// What the kind says.
    pub words: [u64; 2],
}

impl TraceRecord {
    /// What happened; `None` for a kind that there is not.
    #[must_use]
    pub const fn kind(&self) -> Option<TraceKind> {
        TraceKind::from_raw(self.event as u32)
    }
    /// What the kind calls its detail.
    #[must_use]
    pub const fn detail(&self) -> u32 {
        (self.event >> 32) as u32
    }
    /// To which process.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.who as u32
    }
    /// To which thread.
    #[must_use]
    pub const fn tid(&self) -> u32 {
        (self.who >> 32) as u32
    }
}

numbered! {
    /// What happened. Each says what the detail and the words mean; where it says nothing, they are 0.
    pub enum TraceKind: u32, name {
        /// A thread makes a call. Words: the endpoint, and the [`Tag`](super::Tag).
        Call = 1 => "call",
        /// A thread has a call to serve. Words: the caller's thread id, and the tag.
        Receive = 2 => "receive",
        /// A thread has answered the call that it served. Words: the caller's thread id, and the tag.
        Reply = 3 => "reply",
        /// A message's payload or handles have gone from a thread to another. Words: the receiver's thread id, and the tag.
        Transfer = 4 => "transfer",
        /// A thread is taken up by the CPU. Detail: its priority.
        Switch = 5 => "switch",
        /// A thread is ready to run. Detail: the CPU that it waits for.
        Wake = 6 => "wake",
        /// A thread blocks. Detail: the [`ThreadState`](super::info::ThreadState). Words: the deadline, and what it waits on, or 0.
        Block = 7 => "block",
        /// The CPU has nothing to run.
        Idle = 8 => "idle",
        /// A thread has raised an exception. Detail: the vector, and above its 8 bits the error code. Words: the address of a page
        /// fault, and RIP.
        Fault = 9 => "fault",
        /// An interrupt. Detail: an [`InterruptKind`]. Words: the interrupt line, if it is one.
        Interrupt = 10 => "irq",
        /// A process is made. Words: its parent's process id.
        ProcessStart = 11 => "process",
        /// A process begins to end. Detail: the [`ExitReason`](super::exit::ExitReason). Words: the exit code.
        ProcessEnd = 12 => "exit",
        /// A thread is started. Words: RIP and RSP.
        ThreadStart = 13 => "thread",
        /// A thread has ended.
        ThreadEnd = 14 => "ended",
    }
}

numbered! {
    /// What interrupted, as [`InterruptInfo`](super::inspect::InterruptInfo) counts it.
    pub enum InterruptKind: u32, name {
        /// The CPU's timer.
        Timer = 0 => "timer",
        /// A CPU.
        Kick = 1 => "kick",
        /// An interrupt line.
        Line = 2 => "line",
        /// An error of the local APIC, or a vector that nothing should use.
        Error = 3 => "error",
        /// A spurious interrupt.
        Spurious = 4 => "spurious",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_slot_is_no_event() {
        assert_eq!(TraceKind::from_raw(0), None);
    }
}
