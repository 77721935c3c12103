//! What a CPU has done since boot. Only the CPU itself writes; anyone reads.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts, and TSC ticks.
#[derive(Debug)]
#[expect(
    missing_docs,
    reason = "named and described as in `ipc::abi::info::CpuInfo`"
)]
pub struct CpuLoad {
    pub apic_id: AtomicU64,
    pub tsc_offset: AtomicU64,
    pub idle_ticks: AtomicU64,
    pub busy_ticks: AtomicU64,
    pub ticks: AtomicU64,
    pub interrupts: AtomicU64,
    pub syscalls: AtomicU64,
    pub switches: AtomicU64,
    pub longest_entry: AtomicU64,
    /// TSC when the kernel was entered; 0 outside it.
    pub entered: AtomicU64,
    /// TSC when the current thread, or idling, began to be counted.
    pub since: AtomicU64,
}

impl CpuLoad {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            apic_id: AtomicU64::new(0),
            tsc_offset: AtomicU64::new(0),
            idle_ticks: AtomicU64::new(0),
            busy_ticks: AtomicU64::new(0),
            ticks: AtomicU64::new(0),
            interrupts: AtomicU64::new(0),
            syscalls: AtomicU64::new(0),
            switches: AtomicU64::new(0),
            longest_entry: AtomicU64::new(0),
            entered: AtomicU64::new(0),
            since: AtomicU64::new(0),
        }
    }
}

impl Default for CpuLoad {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds to a counter that only this CPU writes: no locked instruction.
pub fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(amount), Relaxed);
}
