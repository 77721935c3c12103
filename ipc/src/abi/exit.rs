//! How a process ended, and the evidence if it did not mean to.

use super::numbered::numbered;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

numbered! {
    /// What a thread did that the hardware or the kernel refused.
    pub enum FaultKind: u64 {
        /// Access to an address that is not mapped, or not mapped for that.
        Page = 1,
        /// General protection: a privileged instruction, a non-canonical address, a port without the right.
        Protection = 2,
        /// Not an instruction.
        InvalidOpcode = 3,
        /// Division by zero or overflow.
        Divide = 4,
        /// x87 or SSE instruction; programs have no such registers.
        NoFpu = 5,
        /// Debug trap.
        Debug = 6,
        /// Misaligned access with alignment checks on.
        Alignment = 7,
        /// Anything else.
        Other = 8,
        /// Breakpoint instruction, with which a program that panicked ends itself.
        Breakpoint = 9,
    }
}

/// Bit of a page fault's error code (Intel SDM volume 3A, 4.7 "Page-Fault Exceptions"): the page was there.
pub const FAULT_PRESENT: u64 = 1 << 0;
/// It was a write.
pub const FAULT_WRITE: u64 = 1 << 1;
/// By user code.
pub const FAULT_USER: u64 = 1 << 2;
/// A fetch of an instruction.
pub const FAULT_FETCH: u64 = 1 << 4;

numbered! {
    /// Why a process ended.
    pub enum ExitReason: u64 {
        /// It has not.
        Running = 0,
        /// It called `process_exit`, or its last thread ended (code 0).
        Exited = 1,
        /// Someone with the right killed it.
        Killed = 2,
        /// A thread faulted.
        Faulted = 3,
    }
}

/// Frames of backtrace kept for a fault.
pub const BACKTRACE_MAX: usize = 16;

numbered! {
    /// How the walk of a backtrace ended.
    pub enum BacktraceEnd: u64 {
        /// At the outermost frame.
        Outermost = 0,
        /// There are more frames than are kept.
        More = 1,
        /// At a frame that is not mapped or cannot be one: a caller is missing.
        Cut = 2,
    }
}

/// What `process_status` writes to the caller's IPC buffer, as 64-bit words in this order.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ProcessStatus {
    /// Process id, never reused.
    pub pid: u64,
    /// [`ExitReason`].
    pub reason: u64,
    /// Exit code of `process_exit` or `process_kill`.
    pub code: u64,
    /// 1 once every frame of a dead process has been returned.
    pub reclaimed: u64,
    /// Threads that have not ended.
    pub threads: u64,
    /// Time its threads ran, in nanoseconds.
    pub cpu_ns: u64,
    /// Pages charged to it, page tables included.
    pub pages: u64,
    /// Quota in pages.
    pub quota_pages: u64,
    /// State of its most active thread: a [`super::info::ThreadState`] number.
    pub state: u64,
    /// CPU of its running thread, else `u64::MAX`.
    pub cpu: u64,
    /// Crash report; all zero unless `reason` is `Faulted`.
    pub crash: CrashReport,
}

/// Registers and backtrace of the thread that faulted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct CrashReport {
    /// [`FaultKind`].
    pub kind: u64,
    /// Thread id.
    pub tid: u64,
    /// Hardware error code; for a page fault the access, in the bits [`FAULT_PRESENT`] and those below it.
    pub error_code: u64,
    /// Address of a page fault.
    pub address: u64,
    /// RIP, RSP, RFLAGS, then RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8 to R15.
    pub registers: [u64; 18],
    /// Frames in `backtrace`.
    pub frames: u64,
    /// Return addresses from the frame-pointer walk; the first is RIP.
    pub backtrace: [u64; BACKTRACE_MAX],
    /// [`BacktraceEnd`].
    pub end: u64,
}
