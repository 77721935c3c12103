//! The shell server: wiring.
#![no_std]
#![no_main]

extern crate alloc;

mod machine;
mod remote;
mod threads;
mod wiring;

sysroot::entry!(main);

/// Runs the session on the console.
fn main() -> sysroot::ExitCode {
    match threads::run("console", "leave with `poweroff`, or Ctrl-A X") {
        Ok(never) => match never {},
        Err(failure) => {
            sysroot::println!("{failure}");
            sysroot::ExitCode::FAILURE
        }
    }
}
