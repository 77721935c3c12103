//! The first program: wiring.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod system;

#[cfg(target_os = "none")]
sysroot::entry!(system::main);

#[cfg(not(target_os = "none"))]
fn main() {}
