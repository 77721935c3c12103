//! `relay`: the server in the middle of a chain: whatever it is asked for, it asks `back` for.
#![no_std]
#![no_main]

use programs::request;
use sysroot::ExitCode;

sysroot::entry!(main);

fn main() -> Result<(), ExitCode> {
    programs::parse("relay", 0, |_| Ok(()))?;
    request::serve("serve:relay", || request::ask("back"))
}
