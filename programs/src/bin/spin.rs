//! `spin [-t MS]`: keeps one CPU busy.
#![no_std]
#![no_main]

use core::hint::black_box;

use sysroot::ExitCode;

sysroot::entry!(main);

fn main() -> Result<(), ExitCode> {
    let ((), deadline) = programs::parse_timed("spin [-t MS]", 0, |_| Ok(()))?;
    let mut turns: u64 = 0;
    while !deadline.has_passed() {
        for _ in 0..2000 {
            turns = black_box(turns + 1);
        }
    }
    Ok(())
}
