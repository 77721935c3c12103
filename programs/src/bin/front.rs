//! `front [WORK] [-t MS]`: a client whose time is spent in servers, but for some work of its own: it calls `relay`, which calls `back`.
#![no_std]
#![no_main]

use programs::request::{self, WORK};
use sysroot::ExitCode;

sysroot::entry!(main);

fn main() -> Result<(), ExitCode> {
    let (units, deadline) = programs::parse_timed("front [WORK] [-t MS]", 1, |arguments| {
        arguments.number_or(0, 0, "WORK", &WORK)
    })?;
    while !deadline.has_passed() {
        work(units);
        request::ask("relay")?;
    }
    Ok(())
}

/// What it does itself.
#[inline(never)]
fn work(units: u64) {
    request::toil(units);
}
