//! The profd server: wiring.
#![no_std]
#![no_main]

mod system;

sysroot::entry!(system::main);
