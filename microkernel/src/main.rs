//! The kernel: `kcore`'s decisions on this machine. The story of its boot begins in `arch::start` and goes on in `boot`.
#![no_std]
#![no_main]

mod arch;
mod boot;
mod entry;
mod fatal;
mod log;

use boot::main;
