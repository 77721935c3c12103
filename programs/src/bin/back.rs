//! `back [WORK]`: the server at the end of a chain. Each call costs it the same work.
#![no_std]
#![no_main]

use programs::request::{self, WORK};
use sysroot::ExitCode;

sysroot::entry!(main);

/// Work for one call: some hundred microseconds where a core is emulated, so that what the calls cost is little.
const DEFAULT: u64 = 20;

fn main() -> Result<(), ExitCode> {
    let units = programs::parse("back [WORK]", 1, |arguments| {
        arguments.number_or(DEFAULT, 0, "WORK", &WORK)
    })?;
    request::serve("serve:back", || {
        work(units);
        Ok(())
    })
}

/// What a call asks for.
#[inline(never)]
fn work(units: u64) {
    request::toil(units);
}
