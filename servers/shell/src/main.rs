//! The shell server: the session on the console, and the door for those from elsewhere.
#![no_std]
#![no_main]

use shell::process;
use sysroot::ExitCode;

sysroot::entry!(main);

fn main() -> ExitCode {
    process::attend();
    match process::console() {
        Ok(never) => match never {},
        Err(failure) => {
            sysroot::println!("{failure}");
            ExitCode::FAILURE
        }
    }
}
