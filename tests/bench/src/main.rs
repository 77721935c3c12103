//! `bench`: measures the system from inside; `./run.sh bench` runs it. It is in the test archive alone.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
sysroot::entry!(bench::guest::main);

#[cfg(not(target_os = "none"))]
fn main() {}
