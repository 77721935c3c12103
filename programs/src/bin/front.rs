//! `front [-t MS]`: a client whose time is spent in servers: it calls `relay`, which calls `back`.
#![no_std]
#![no_main]

use programs::request;
use sysroot::ExitCode;

sysroot::entry!(main);

fn main() -> Result<(), ExitCode> {
    let ((), deadline) = programs::parse_timed("front [-t MS]", 0, |_| Ok(()))?;
    while !deadline.has_passed() {
        request::ask("relay")?;
    }
    Ok(())
}
