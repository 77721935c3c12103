//! `spin [-t MS]`: keeps one CPU busy.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
use {core::hint::black_box, sysroot::ExitCode};

#[cfg(target_os = "none")]
sysroot::entry!(main);

#[cfg(not(target_os = "none"))]
fn main() {}

#[cfg(target_os = "none")]
fn main() -> Result<(), ExitCode> {
    let ((), deadline) = programs::parse_timed(0, |_| Ok(()))?;
    let mut turns: u64 = 0;
    while !deadline.has_passed() {
        for _ in 0..2000 {
            turns = black_box(turns + 1);
        }
    }
    Ok(())
}
