//! What taking a sample asks of the machine: physical memory, this CPU's kernel stacks, its performance counter, and the time.

use super::layout::Span;
use crate::base::addr::{Frame, Tsc};
use crate::base::cpu::CpuId;
use crate::hardware::PhysWords;
use crate::pmu::MonitorBus;
use core::convert::Infallible;

/// A stack that a CPU has in the kernel, for reading.
pub trait KernelWords: Copy {
    /// Where it is.
    fn span(self) -> Span;
    /// Reads a word by a volatile or atomic load; `None` unless the address is 8-byte aligned and the word lies in the stack.
    fn word(self, at: u64) -> Option<u64>;
}

/// The machine, as the sampling path sees it. It is asked in an NMI: nothing here may lock, wait or fault.
pub trait Machine: PhysWords {
    /// A stack.
    type KernelWords<'a>: KernelWords
    where
        Self: 'a;
    /// The performance monitor of the CPU that runs this. Only registers that the proof has accessed are.
    type Monitor: MonitorBus<Fault = Infallible>;

    /// The time-stamp counter.
    fn tsc(&self) -> Tsc;
    /// The kernel or IST stack of a CPU that an address points into, or to the end of: an empty stack.
    fn kernel_stack(&self, cpu: CpuId, rsp: u64) -> Option<Self::KernelWords<'_>>;
    /// Root of the tables that this CPU has on: of the program that was interrupted, if it was one.
    fn space(&self) -> Frame;
    /// Has the source that is its own trigger cause the next NMI of a CPU; says how many samples were due since the last one and not
    /// taken. Only of a machine with such a source.
    fn next_sample(&self, _: CpuId) -> u64 {
        0
    }
    /// See [`Machine::Monitor`].
    fn monitor(&self) -> &Self::Monitor;
}
