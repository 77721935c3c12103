//! `front [-t MS]`: a client whose time is spent in servers: it calls `relay`, which calls `back`.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
use {programs::request, sysroot::ExitCode};

#[cfg(target_os = "none")]
sysroot::entry!(main);

#[cfg(not(target_os = "none"))]
fn main() {}

#[cfg(target_os = "none")]
fn main() -> Result<(), ExitCode> {
    let ((), deadline) = programs::parse_timed(0, |_| Ok(()))?;
    while !deadline.has_passed() {
        request::ask("relay")?;
    }
    Ok(())
}
