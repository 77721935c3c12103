//! Read-only facts that the kernel publishes: the information page and the records of `system_info`.
//!
//! All are `repr(C)` and made of 64-bit words, so that they cross the boundary as words and no field needs a parser.

use super::numbered::numbered;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The information page, mapped read-only at [`super::layout::INFO_PAGE`] in every process.
///
/// Nanoseconds since boot = `((tsc - tsc_boot) * tsc_mult) >> 32`, in 128-bit arithmetic.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct InfoPage {
    /// [`super::ABI_VERSION`] of the kernel.
    pub abi_version: u64,
    /// TSC at time zero.
    pub tsc_boot: u64,
    /// Nanoseconds per TSC tick, times 2^32.
    pub tsc_mult: u64,
    /// TSC ticks in a second.
    pub tsc_hz: u64,
    /// CPUs that run.
    pub cpus: u64,
    /// 1 if programs can read the kernel's memory on this processor (Meltdown), else 0.
    pub exposed: u64,
}

numbered! {
    /// What `system_info` can be asked for. An index past the last one that there can be is `NotFound`. An index that nothing has
    /// just now gives no record: the length is 0.
    pub enum InfoKind: u64 {
        /// One [`MemoryInfo`]; the index must be 0.
        Memory = 0,
        /// One [`CpuInfo`] for each CPU; the index is the CPU.
        Cpu = 1,
        /// The boot command line as bytes; the index must be 0. Returns its length.
        CommandLine = 2,
        /// The kernel's version line as bytes; the index must be 0. Returns its length.
        Version = 3,
        /// One [`ProcessInfo`](super::inspect::ProcessInfo) for each slot of the processes' pool.
        Process = 4,
        /// One [`ThreadInfo`](super::inspect::ThreadInfo) for each slot of the threads' pool whose thread has not ended.
        Thread = 5,
        /// One [`MappingInfo`](super::inspect::MappingInfo) for each mapping of each process; see
        /// [`mapping_index`](super::inspect::mapping_index).
        Mapping = 6,
        /// One [`PageInfo`](super::inspect::PageInfo) for each page of RAM of each mapping; see
        /// [`page_index`](super::inspect::page_index).
        Page = 7,
        /// One [`StackInfo`](super::inspect::StackInfo) for each stack of each CPU; see [`stack_index`](super::inspect::stack_index).
        Stack = 8,
        /// One [`InterruptInfo`](super::inspect::InterruptInfo) for each CPU; the index is the CPU.
        Interrupts = 9,
        /// One [`LineInfo`](super::inspect::LineInfo) for each interrupt line that somebody has or that was ever signalled.
        Line = 10,
        /// One [`TraceInfo`](super::trace::TraceInfo); the index must be 0.
        Trace = 11,
    }
}

numbered! {
    /// A pool of kernel objects.
    pub enum Pool: u64, name {
        /// Processes.
        Processes = 0 => "processes",
        /// Threads.
        Threads = 1 => "threads",
        /// Endpoints.
        Endpoints = 2 => "endpoints",
        /// Notifications.
        Notifications = 3 => "notifications",
        /// Memory objects.
        Memory = 4 => "memory objects",
        /// Pieces of handle tables.
        Chunks = 5 => "handle chunks",
        /// Badges.
        Badges = 6 => "badges",
    }
}

/// Where the machine's memory is, in pages of 4 KiB.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct MemoryInfo {
    /// RAM the firmware reported.
    pub total: u64,
    /// Free now.
    pub free: u64,
    /// Freed, waiting until no CPU can reach them.
    pub waiting: u64,
    /// Kernel image, pools, stacks and rings, reserved at boot.
    pub kernel: u64,
    /// The boot module.
    pub bootfs: u64,
    /// Charged to processes.
    pub processes: u64,
    /// Slots in use, then slots in all, by [`Pool`].
    pub pools: [[u64; 2]; Pool::ALL.len()],
}

/// One CPU since it began to take part.
///
/// All of its time is somebody's: `idle_ns + busy_ns = at_ns - started_ns`, but for a nanosecond that each of them may lose by rounding.
/// What a CPU does in the kernel is the time of the thread that it had when it entered, or of the one it then takes up.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct CpuInfo {
    /// Local APIC id.
    pub apic_id: u64,
    /// Nanoseconds without a thread, up to now.
    pub idle_ns: u64,
    /// Nanoseconds in threads, up to now.
    pub busy_ns: u64,
    /// Timer ticks.
    pub ticks: u64,
    /// Interrupts of every kind: the sum of an [`InterruptInfo`](super::inspect::InterruptInfo) but for the exceptions.
    pub interrupts: u64,
    /// System calls.
    pub syscalls: u64,
    /// Thread switches.
    pub switches: u64,
    /// Longest time with interrupts off in one kernel entry, in TSC ticks.
    pub longest_entry: u64,
    /// TSC difference to CPU 0, as measured at boot, two's complement.
    pub tsc_offset: u64,
    /// When it began to take part, in nanoseconds since boot.
    pub started_ns: u64,
    /// When this was read, in nanoseconds since boot.
    pub at_ns: u64,
}

numbered! {
    /// What a thread is doing.
    pub enum ThreadState: u64, name {
        /// Created, never started.
        Held = 0 => "held",
        /// Waits for a CPU.
        Ready = 1 => "ready",
        /// On a CPU.
        Running = 2 => "run",
        /// Waits for a call to arrive.
        Receiving = 3 => "recv",
        /// Waits to be received, or for its reply.
        Calling = 4 => "call",
        /// Waits on a notification.
        Waiting = 5 => "wait",
        /// Waits for a time.
        Sleeping = 6 => "sleep",
        /// Waits for memory to be unmapped everywhere.
        Unmapping = 7 => "unmap",
        /// Ended.
        Dead = 8 => "dead",
    }
}
