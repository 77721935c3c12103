//! `relay`: the server in the middle of a chain: whatever it is asked for, it asks `back` for.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
use {programs::request, sysroot::ExitCode};

#[cfg(target_os = "none")]
sysroot::entry!(main);

#[cfg(not(target_os = "none"))]
fn main() {}

#[cfg(target_os = "none")]
fn main() -> Result<(), ExitCode> {
    programs::parse(0, |_| Ok(()))?;
    request::serve("serve:relay", || request::ask("back"))
}
