//! The shell server: the session on the console, and the door for those from elsewhere.
#![no_std]
#![no_main]

use core::convert::Infallible;

use shell::process::{self, Failure};

sysroot::entry!(main);

fn main() -> Result<Infallible, Failure> {
    process::attend();
    process::console()
}
