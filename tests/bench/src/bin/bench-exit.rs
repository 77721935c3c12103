//! `bench-exit`: a program that does nothing, to measure what it takes to start and end one.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
sysroot::entry!(main);

#[cfg(target_os = "none")]
fn main() {}

#[cfg(not(target_os = "none"))]
fn main() {}
