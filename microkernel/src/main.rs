//! The kernel: `kcore`'s decisions on this machine. This file is the story of the boot.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod arch;
#[cfg(target_os = "none")]
mod boot;
#[cfg(target_os = "none")]
mod entry;
#[cfg(target_os = "none")]
mod fatal;
#[cfg(target_os = "none")]
mod log;

#[cfg(target_os = "none")]
use boot::main;

#[cfg(not(target_os = "none"))]
fn main() {}
