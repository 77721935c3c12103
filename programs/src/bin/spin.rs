//! `spin [-t MS]`: keeps one CPU busy.
#![no_std]
#![no_main]

use core::hint::{self, black_box};

use sysroot::ExitCode;

sysroot::entry!(main);

fn main() -> Result<(), ExitCode> {
    let ((), deadline) = programs::parse_timed("spin [-t MS]", 0, |_| Ok(()))?;
    let mut turns: u64 = 0;
    while !deadline.has_passed() {
        for _ in 0..2000 {
            turns = black_box(turns + 1);
        }
        // An emulator that runs one CPU at a time gives the others their turn here.
        hint::spin_loop();
    }
    Ok(())
}
