//! A session that came from elsewhere: what the shell starts for each.
#![no_std]
#![no_main]

use shell::process;
use sysroot::ExitCode;

sysroot::entry!(main);

fn main() -> ExitCode {
    match process::remote() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            sysroot::println!("{failure}");
            ExitCode::FAILURE
        }
    }
}
