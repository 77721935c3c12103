//! The machine: all that is x86_64 about the kernel, and nearly all that is unsafe. What is decided here is only how; what
//! and when is decided in `kcore`.

pub mod apic;
pub mod clock;
pub mod cpu;
pub mod devices;
pub mod direct;
pub mod entry;
pub mod idt;
pub mod image;
pub mod layout;
pub mod machine;
pub mod memory;
pub mod monitor;
pub mod paging;
pub mod percpu;
pub mod power;
pub mod probe;
pub mod sampling;
pub mod serial;
pub mod smp;
pub mod start;
pub mod trouble;
