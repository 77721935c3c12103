//! The kernel's decisions, with no hardware in them.
//!
//! Everything here runs on the host as well as in the kernel: hardware is behind [`hardware::Hardware`] and physical
//! memory behind [`hardware::PhysMemory`]. The kernel binary supplies both, owns every `unsafe` block, and calls
//! in from its entry stubs.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod account;
pub mod apic;
pub mod authority;
pub mod base;
pub mod boot;
pub mod calls;
pub mod elf;
pub mod handles;
pub mod hardware;
pub mod interrupts;
pub mod ipc;
pub mod kernel;
pub mod life;
pub mod log;
pub mod mem;
pub mod object;
pub mod pmu;
pub mod profile;
pub mod scarce;
pub mod sched;
#[cfg(test)]
mod sim;
pub mod space;
pub mod timers;
pub mod trace;
pub mod work;
