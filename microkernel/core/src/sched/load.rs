//! What a CPU has done since boot. Only the CPU itself writes; anyone reads.

use super::meter::Meter;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use ipc::abi::inspect::InterruptInfo;
use ipc::abi::trace::InterruptKind;

/// Counts, and TSC ticks.
#[derive(Debug, Default)]
#[expect(
    missing_docs,
    reason = "named and described as in `ipc::abi::info::CpuInfo`"
)]
pub struct CpuLoad {
    pub apic_id: AtomicU64,
    pub tsc_offset: AtomicU64,
    /// Whose its time was.
    pub meter: Meter,
    pub ticks: AtomicU64,
    /// By [`InterruptKind`].
    pub interrupts: [AtomicU64; InterruptKind::ALL.len()],
    /// Written by the NMI alone.
    pub nmis: AtomicU64,
    pub exceptions: AtomicU64,
    pub syscalls: AtomicU64,
    pub switches: AtomicU64,
    pub longest_entry: AtomicU64,
    /// TSC when the kernel was entered; 0 outside it.
    pub entered: AtomicU64,
}

impl CpuLoad {
    /// What it was interrupted by.
    #[must_use]
    pub fn interrupts(&self) -> InterruptInfo {
        let of = |kind| self.interrupts[kind as usize].load(Relaxed);
        InterruptInfo {
            timer: of(InterruptKind::Timer),
            kicks: of(InterruptKind::Kick),
            lines: of(InterruptKind::Line),
            errors: of(InterruptKind::Error),
            spurious: of(InterruptKind::Spurious),
            nmis: self.nmis.load(Relaxed),
            exceptions: self.exceptions.load(Relaxed),
        }
    }
}

/// Adds to a counter that only this CPU writes: no locked instruction.
#[inline]
pub fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(amount), Relaxed);
}
