//! `sleep MS`: does nothing for so long.
#![no_std]
#![no_main]

use core::ops::RangeInclusive;

use sysroot::{ExitCode, time};

sysroot::entry!(main);

/// How long, in milliseconds: up to a day.
const MS: RangeInclusive<u64> = 0..=86_400_000;

fn main() -> Result<(), ExitCode> {
    let ms = programs::parse("sleep MS", 1, |arguments| arguments.number(0, "MS", &MS))?;
    time::sleep(ms * time::MILLISECOND);
    Ok(())
}
