//! The first program: wiring.
#![no_std]
#![no_main]

mod configuration;
mod system;

sysroot::entry!(system::main);
