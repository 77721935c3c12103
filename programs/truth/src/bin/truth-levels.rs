//! `truth-levels`: a function that calls itself, and takes the same time at each level.
#![no_std]
#![no_main]

use core::hint::black_box;

use truth::{LEVELS, Turns};

sysroot::entry!(main);

/// Turns of the loop at each level: many against what a call costs, and few against the distance of samples.
const TURNS: u64 = 300;

fn main() {
    let mut turns = Turns::new();
    loop {
        black_box(descend(&mut turns, LEVELS));
    }
}

#[inline(never)]
fn descend(turns: &mut Turns, levels: u64) -> u64 {
    let mut value = 0;
    for turn in 0..TURNS {
        turns.take();
        value = black_box(value ^ turn);
    }
    if levels > 1 {
        // What it does with the result keeps the call from becoming a jump.
        value ^= black_box(descend(turns, black_box(levels - 1)));
    }
    value
}
