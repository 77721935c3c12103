//! `truth-levels`: a function that calls itself, and takes the same time at each level.
#![no_std]
#![no_main]

use core::hint::black_box;

use truth::LEVELS;

sysroot::entry!(main);

/// Turns of the loop at each level: many against what a call costs, and few against the distance of samples.
const TURNS: u64 = 300;

/// Rounds between two pauses: about a millisecond.
const ROUNDS: u32 = 64;

fn main() {
    loop {
        for _ in 0..ROUNDS {
            black_box(descend(LEVELS));
        }
        truth::let_others_run();
    }
}

#[inline(never)]
fn descend(levels: u64) -> u64 {
    let mut value = 0;
    for turn in 0..TURNS {
        value = black_box(value ^ turn);
    }
    if levels > 1 {
        // What it does with the result keeps the call from becoming a jump.
        value ^= black_box(descend(black_box(levels - 1)));
    }
    value
}
