//! `chain DEPTH [-t MS]`: is busy at the bottom of a chain of so many calls, so that a profile has frames to show.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
use {core::hint::black_box, core::ops::RangeInclusive, programs::Deadline, sysroot::ExitCode};

#[cfg(target_os = "none")]
sysroot::entry!(main);

#[cfg(not(target_os = "none"))]
fn main() {}

/// How deep it may be: all frames fit the smallest stack.
#[cfg(target_os = "none")]
const DEPTH: RangeInclusive<u64> = 1..=500;

#[cfg(target_os = "none")]
fn main() -> Result<(), ExitCode> {
    let (depth, deadline) =
        programs::parse_timed(1, |arguments| arguments.number(0, "DEPTH", &DEPTH))?;
    black_box(link(depth, deadline));
    Ok(())
}

/// One call of the chain. What it does with the result keeps the call from becoming a jump.
#[cfg(target_os = "none")]
#[inline(never)]
fn link(depth: u64, deadline: Deadline) -> u64 {
    if depth == 1 {
        return black_box(bottom(deadline));
    }
    black_box(link(black_box(depth - 1), deadline)) + 1
}

/// Where the time goes.
#[cfg(target_os = "none")]
#[inline(never)]
fn bottom(deadline: Deadline) -> u64 {
    let mut value = 0;
    while !deadline.has_passed() {
        for step in 0..2000 {
            value = black_box(value ^ step);
        }
    }
    value
}
