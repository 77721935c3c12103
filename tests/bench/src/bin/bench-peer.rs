//! `bench-peer`: the server that `bench` calls. It ends when it is told to.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
sysroot::entry!(bench::guest::serve);

#[cfg(not(target_os = "none"))]
fn main() {}
