//! `truth-rare`: two functions, one of which has a thousandth of the time.
#![no_std]
#![no_main]

use core::hint::black_box;

use truth::Turns;

sysroot::entry!(main);

/// Turns of the rare one: many against what a call costs.
const RARE: u64 = 50;
/// Turns of the other one.
const COMMON: u64 = 999 * RARE;

truth::loops! {
    common 0x7777_0001,
    rare 0x7777_0002,
}

fn main() {
    let mut turns = Turns::new();
    loop {
        black_box(common(&mut turns, COMMON));
        black_box(rare(&mut turns, RARE));
    }
}
