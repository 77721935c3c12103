//! `back`: the server at the end of a chain. Each call costs it the same work.
#![no_std]
#![no_main]

use core::hint::black_box;

use programs::request;
use sysroot::ExitCode;

sysroot::entry!(main);

/// Turns of the loop for one call: some hundred microseconds where a core is emulated, so that what the calls cost is little.
const TURNS: u64 = 20_000;

fn main() -> Result<(), ExitCode> {
    programs::parse("back", 0, |_| Ok(()))?;
    request::serve("serve:back", || {
        black_box(work());
        Ok(())
    })
}

/// What a call asks for.
#[inline(never)]
fn work() -> u64 {
    let mut value = 0;
    for turn in 0..TURNS {
        value = black_box(value ^ turn);
    }
    value
}
