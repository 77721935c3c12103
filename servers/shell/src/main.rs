//! The shell server: wiring.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod machine;
#[cfg(target_os = "none")]
mod remote;
#[cfg(target_os = "none")]
mod threads;

#[cfg(target_os = "none")]
sysroot::entry!(main);

#[cfg(not(target_os = "none"))]
fn main() {}

/// Runs the session on the console.
#[cfg(target_os = "none")]
fn main() -> sysroot::ExitCode {
    match threads::run("console", "leave with `poweroff`, or Ctrl-A X") {
        Ok(never) => match never {},
        Err(failure) => {
            sysroot::println!("{failure}");
            sysroot::ExitCode::FAILURE
        }
    }
}
