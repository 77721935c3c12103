//! `truth-shares A B C`: spends its time in three functions, in these shares.
#![no_std]
#![no_main]

use core::hint::black_box;

use sysroot::{ExitCode, startup};
use truth::Turns;

sysroot::entry!(main);

/// Turns for each unit of a share: many against what a call costs, and few against the distance of samples, with all shares together.
const UNIT: u64 = 20;

const SHARES: [fn(&mut Turns, u64) -> u64; 3] = [share_a, share_b, share_c];

truth::loops! {
    share_a 0x1111_0001,
    share_b 0x1111_0002,
    share_c 0x1111_0003,
}

fn main() -> Result<(), ExitCode> {
    let mut words = startup::args().map(str::parse::<u64>);
    let mut round = [0; SHARES.len()];
    for share in &mut round {
        let Some(Ok(word)) = words.next() else {
            return Err(ExitCode::USAGE);
        };
        *share = word * UNIT;
    }
    let mut turns = Turns::new();
    loop {
        for (share, &number) in SHARES.iter().zip(&round) {
            black_box(share(&mut turns, number));
        }
    }
}
