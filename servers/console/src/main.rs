//! The console server: wiring.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod server;

#[cfg(target_os = "none")]
sysroot::entry!(server::main);

#[cfg(not(target_os = "none"))]
fn main() {}
