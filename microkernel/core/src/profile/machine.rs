//! What taking a sample asks of the machine: physical memory, this CPU's kernel stacks, and the time.

use crate::base::addr::Tsc;
use crate::hardware::PhysMemory;

/// The machine, as the sampling path sees it. It is asked in an NMI: nothing here may lock, wait or fault.
pub trait Machine: PhysMemory {
    /// The time-stamp counter.
    fn tsc(&self) -> Tsc;
    /// Reads a word of a kernel stack of this CPU, by a volatile or atomic load. `at` is 8-byte aligned, and lies in one of
    /// the spans that [`super::CpuState`] was made with; `None` if the implementation, which checks that again to be sound,
    /// finds that it does not.
    fn kernel_word(&self, at: u64) -> Option<u64>;
}
