//! Attacks on what the system promises to keep apart. Each is carried out by a process of its own, which the hardware or the kernel
//! must stop: `isolation` starts them, one after the other, and judges by what init says of each one's end.
//!
//! Two programs carry them out. `intruder` has been given nothing but an output: what it tries is what any program can try. `isolation`
//! itself, started with an argument, has the profiling driver and the boot archive, and tries to do more with them than their rights allow.
//!
//! An attack that is to fault is one instruction, so that nothing else can have faulted. One that is to be refused makes as many attempts
//! as it likes, and ends with their number; it panics at the first that succeeds.
#![no_std]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod access;
#[cfg(target_os = "none")]
pub mod attack;
#[cfg(target_os = "none")]
mod authority;
#[cfg(target_os = "none")]
mod flags;
#[cfg(target_os = "none")]
mod handles;
#[cfg(target_os = "none")]
mod instructions;
#[cfg(target_os = "none")]
pub mod judge;
#[cfg(target_os = "none")]
mod memory;
#[cfg(target_os = "none")]
mod raw;
#[cfg(target_os = "none")]
pub mod table;
#[cfg(target_os = "none")]
mod words;
