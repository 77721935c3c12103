//! The kernel: `kcore`'s decisions on this machine. The story of its boot begins in `arch::start` and goes on in `boot`.
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
