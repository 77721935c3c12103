//! `chain DEPTH [-t MS]`: is busy at the bottom of a chain of so many calls, so that a profile has frames to show.
#![no_std]
#![no_main]

use core::hint::{black_box, spin_loop};
use core::ops::RangeInclusive;

use programs::Deadline;
use sysroot::ExitCode;

sysroot::entry!(main);

/// How deep it may be: all frames fit the smallest stack.
const DEPTH: RangeInclusive<u64> = 1..=500;

fn main() -> Result<(), ExitCode> {
    let (depth, deadline) = programs::parse_timed("chain DEPTH [-t MS]", 1, |arguments| {
        arguments.number(0, "DEPTH", &DEPTH)
    })?;
    black_box(link(depth, deadline));
    Ok(())
}

/// One call of the chain. What it does with the result keeps the call from becoming a jump.
#[inline(never)]
fn link(depth: u64, deadline: Deadline) -> u64 {
    if depth == 1 {
        return black_box(bottom(deadline));
    }
    black_box(link(black_box(depth - 1), deadline)) + 1
}

/// Turns of the loop between two looks at the clock: about a millisecond, where an instruction takes a nanosecond.
const STEPS: u64 = 200_000;

/// Where the time goes.
#[inline(never)]
fn bottom(deadline: Deadline) -> u64 {
    let mut value = 0;
    while !deadline.has_passed() {
        for step in 0..STEPS {
            value = black_box(value ^ step);
        }
        spin_loop(); // lets another CPU run where an emulator runs one at a time
    }
    value
}
