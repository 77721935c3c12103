//! The profiling driver: takes samples where the machine is interrupted, and leaves their meaning to `profd`.
//!
//! Mechanism only, and no hardware: the kernel binary calls in from its tick and from its NMI handler, and says through
//! [`Machine`] and [`Threads`] what the machine looks like. docs/profiler.md tells the whole story.
//!
//! # Rules of the sampling path
//! Everything that [`Driver::on_tick`] and [`Driver::on_nmi`] reach may run in an NMI, between any two instructions of the kernel. So there is:
//! - no lock, no allocation, no formatting, no symbol lookup, no panic;
//! - no fault: an address from a program is never dereferenced, only translated through page tables that are themselves
//!   checked to be in RAM;
//! - no unbounded work: frames, clients and stack words have fixed limits, and every address must be above the last;
//! - no trust in what it reads: whoever owns it may be in the middle of changing it, on this CPU or another. It is read by
//!   atomic loads, checked, and at worst counted as cut, unmapped or changed.

mod arming;
mod chain;
mod clients;
mod counters;
mod counting;
mod cpu;
mod driver;
mod expected;
mod findings;
mod interrupted;
mod late;
mod layout;
mod machine;
mod own;
mod program;
mod record;
mod sampling;
mod source;
mod stack;
mod threads;
mod translate;
mod walk;

pub use cpu::CpuState;
pub use driver::{Driver, Wake};
pub use expected::{Expected, Purpose};
pub use interrupted::{Context, Interrupted, interrupts_off};
pub use layout::{KernelMap, Span};
pub use machine::{KernelWords, Machine};
pub use source::{CounterSource, SampleSource, Tick, Trigger};
pub(crate) use stack::UserStack;
pub use threads::{Names, ThreadView, Threads};
pub(crate) use walk::{End, follow};

#[cfg(test)]
mod tests;
