//! The trace: what each CPU did, event by event. It is off until `trace_control` turns it on.
//!
//! Each CPU has a ring of its own, of which the newest record overwrites the oldest. Records are numbered from 1, by CPU and since boot.
//! `trace_read` takes the number of the last record that is known and copies those behind it: `next - position` is always the
//! number of records copied plus the number of those that were lost.

use super::message::PAYLOAD_MAX;
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

/// Declares [`TraceKind`], its numbers and its names in one place.
macro_rules! kinds {
    ($($(#[$doc:meta])* $number:literal $variant:ident = $name:literal;)*) => {
        /// What happened. Each says what the detail and the words mean; where it says nothing, they are 0.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum TraceKind { $($(#[$doc])* $variant = $number,)* }

        impl TraceKind {
            /// Every kind, in the order of the numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The kind with this number.
            #[must_use]
            pub const fn from_raw(raw: u32) -> Option<Self> {
                match raw { $($number => Some(Self::$variant),)* _ => None }
            }
            /// One short word.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

kinds! {
    /// A thread makes a call. Words: the endpoint, and the [`Tag`](super::Tag).
    1 Call = "call";
    /// A thread has a call to serve. Words: the caller's thread id, and the tag.
    2 Receive = "receive";
    /// A thread has answered the call that it served. Words: the caller's thread id, and the tag.
    3 Reply = "reply";
    /// A message's payload or handles have gone from a thread to another. Words: the receiver's thread id, and the tag.
    4 Transfer = "transfer";
    /// A thread is taken up by the CPU. Detail: its priority.
    5 Switch = "switch";
    /// A thread is ready to run. Detail: the CPU that it waits for.
    6 Wake = "wake";
    /// A thread blocks. Detail: the [`ThreadState`](super::info::ThreadState). Words: the deadline, and what it waits on, or 0.
    7 Block = "block";
    /// The CPU has nothing to run.
    8 Idle = "idle";
    /// A thread has raised an exception. Detail: the vector, and above its 8 bits the error code. Words: the address of a page fault, and RIP.
    9 Fault = "fault";
    /// An interrupt. Detail: an [`InterruptKind`]. Words: the interrupt line, if it is one.
    10 Interrupt = "irq";
    /// A process is made. Words: its parent's process id.
    11 ProcessStart = "process";
    /// A process begins to end. Detail: the [`ExitReason`](super::exit::ExitReason). Words: the exit code.
    12 ProcessEnd = "exit";
    /// A thread is started. Words: RIP and RSP.
    13 ThreadStart = "thread";
    /// A thread has ended.
    14 ThreadEnd = "ended";
}

/// What interrupted, as [`InterruptInfo`](super::inspect::InterruptInfo) counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum InterruptKind {
    /// The CPU's timer.
    Timer = 0,
    /// A CPU.
    Kick = 1,
    /// An interrupt line.
    Line = 2,
    /// An error of the local APIC, or a vector that nothing should use.
    Error = 3,
    /// A spurious interrupt.
    Spurious = 4,
}

impl InterruptKind {
    /// Every kind, in the order of the numbers.
    pub const ALL: [Self; 5] = [
        Self::Timer,
        Self::Kick,
        Self::Line,
        Self::Error,
        Self::Spurious,
    ];

    /// The kind with this number.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Option<Self> {
        Some(match raw {
            0 => Self::Timer,
            1 => Self::Kick,
            2 => Self::Line,
            3 => Self::Error,
            4 => Self::Spurious,
            _ => return None,
        })
    }
    /// One short word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Kick => "kick",
            Self::Line => "line",
            Self::Error => "error",
            Self::Spurious => "spurious",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        for &kind in TraceKind::ALL {
            assert_eq!(TraceKind::from_raw(kind as u32), Some(kind));
        }
        assert_eq!(TraceKind::from_raw(0), None, "an empty slot is no event");
        for kind in InterruptKind::ALL {
            assert_eq!(InterruptKind::from_raw(kind as u32), Some(kind));
        }
    }
}
