//! `shares SHARE... [-t MS]`: spends its time in known shares, so that a profile can be held to the truth.
//!
//! The loops are the same instructions in functions of their own; only an immediate operand differs, so that they are not
//! merged into one. A round runs each in proportion, and is short against the distance of samples.
#![no_std]
#![no_main]

use core::hint::{black_box, spin_loop};

use programs::shares;
use sysroot::ExitCode;

sysroot::entry!(main);

/// Rounds between two looks at the clock: about a millisecond, where an instruction takes a nanosecond.
const ROUNDS: u32 = 100;

fn main() -> Result<(), ExitCode> {
    let (round, deadline) =
        programs::parse_timed("shares SHARE... [-t MS]", shares::SHARES_MAX, shares::round)?;
    while !deadline.has_passed() {
        for _ in 0..ROUNDS {
            for (share, &iterations) in SHARES.iter().zip(&round) {
                black_box(share(iterations));
            }
        }
        spin_loop(); // lets another CPU run where an emulator runs one at a time
    }
    Ok(())
}

/// One function for each share.
macro_rules! shares {
    ($($name:ident $seed:literal,)*) => {
        const SHARES: [fn(u64) -> u64; shares::SHARES_MAX] = [$($name),*];

        $(
            #[inline(never)]
            fn $name(iterations: u64) -> u64 {
                let mut value = black_box($seed);
                for step in 0..iterations {
                    value = black_box(value ^ step);
                }
                value
            }
        )*
    };
}

shares! {
    share_a 0x1111_0001,
    share_b 0x1111_0002,
    share_c 0x1111_0003,
    share_d 0x1111_0004,
    share_e 0x1111_0005,
    share_f 0x1111_0006,
    share_g 0x1111_0007,
    share_h 0x1111_0008,
    share_i 0x1111_0009,
    share_j 0x1111_000a,
}
