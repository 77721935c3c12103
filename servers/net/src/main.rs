//! The net server: wiring.
#![no_std]
#![no_main]

extern crate alloc;

mod hardware;
mod machine;
mod shell;

sysroot::entry!(machine::main);
