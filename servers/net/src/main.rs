//! The net server: wiring.
#![no_std]
#![no_main]

mod machine;

sysroot::entry!(machine::main);
