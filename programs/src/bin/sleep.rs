//! `sleep MS`: does nothing for so long.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
use {
    core::ops::RangeInclusive,
    sysroot::{ExitCode, time},
};

#[cfg(target_os = "none")]
sysroot::entry!(main);

#[cfg(not(target_os = "none"))]
fn main() {}

/// How long, in milliseconds: up to a day.
#[cfg(target_os = "none")]
const MS: RangeInclusive<u64> = 0..=86_400_000;

#[cfg(target_os = "none")]
fn main() -> Result<(), ExitCode> {
    let ms = programs::parse(1, |arguments| arguments.number(0, "MS", &MS))?;
    time::sleep(ms * time::MILLISECOND);
    Ok(())
}
