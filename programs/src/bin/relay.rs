//! `relay [WORK]`: the server in the middle of a chain: whatever it is asked for, it asks `back` for, after some work of its own.
#![no_std]
#![no_main]

use programs::request::{self, WORK};
use sysroot::ExitCode;

sysroot::entry!(main);

fn main() -> Result<(), ExitCode> {
    let units = programs::parse("relay [WORK]", 1, |arguments| {
        arguments.number_or(0, 0, "WORK", &WORK)
    })?;
    request::serve("serve:relay", || {
        work(units);
        request::ask("back")
    })
}

/// What it does itself.
#[inline(never)]
fn work(units: u64) {
    request::toil(units);
}
