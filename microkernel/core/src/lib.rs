//! The kernel's decisions, with no hardware in them.
//!
//! Everything here runs on the host as well as in the kernel: hardware is behind [`hardware::Hardware`] and physical
//! memory behind [`hardware::PhysMemory`]. The kernel binary supplies both, owns every `unsafe` block, and calls
//! in from its entry stubs.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod apic;
pub mod base;
pub mod boot;
pub mod elf;
pub mod hardware;
pub mod log;
pub mod mem;
pub mod profile;
pub mod timers;
