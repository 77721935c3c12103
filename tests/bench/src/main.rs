//! `bench`: measures the kernel from inside, in instructions. It is in the test archive alone.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
use sysroot::{println, syscall};

#[cfg(target_os = "none")]
sysroot::entry!(main);

#[cfg(not(target_os = "none"))]
fn main() {}

/// Calls that are counted.
#[cfg(target_os = "none")]
const ROUNDS: usize = 100;

#[cfg(target_os = "none")]
fn main() {
    let least = (0..ROUNDS).map(|_| {
        let start = syscall::rdtsc();
        // The call has no result but that it was made.
        let _ = syscall::null();
        syscall::rdtsc() - start
    });
    println!("null {}", least.min().unwrap_or(0));
}
