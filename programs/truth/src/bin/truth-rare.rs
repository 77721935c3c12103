//! `truth-rare`: two functions, one of which has a thousandth of the time.
#![no_std]
#![no_main]

use core::hint::black_box;

sysroot::entry!(main);

/// Turns of the rare one: many against what a call costs.
const RARE: u64 = 50;
/// Turns of the other one.
const COMMON: u64 = 999 * RARE;

/// Rounds between two pauses: about a millisecond.
const ROUNDS: u32 = 4;

truth::loops! {
    common 0x7777_0001,
    rare 0x7777_0002,
}

fn main() {
    loop {
        for _ in 0..ROUNDS {
            black_box(common(COMMON));
            black_box(rare(RARE));
        }
        truth::let_others_run();
    }
}
