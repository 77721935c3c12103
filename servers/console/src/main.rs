//! The console server: wiring.
#![no_std]
#![no_main]

mod server;

sysroot::entry!(server::main);
