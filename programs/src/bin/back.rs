//! `back`: the server at the end of a chain. Each call costs it the same work.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
use {core::hint::black_box, programs::request, sysroot::ExitCode};

#[cfg(target_os = "none")]
sysroot::entry!(main);

#[cfg(not(target_os = "none"))]
fn main() {}

/// Turns of the loop for one call: some hundred microseconds where a core is emulated, so that what the calls cost is little.
#[cfg(target_os = "none")]
const TURNS: u64 = 20_000;

#[cfg(target_os = "none")]
fn main() -> Result<(), ExitCode> {
    programs::parse(0, |_| Ok(()))?;
    request::serve("serve:back", || {
        black_box(work());
        Ok(())
    })
}

/// What a call asks for.
#[cfg(target_os = "none")]
#[inline(never)]
fn work() -> u64 {
    let mut value = 0;
    for turn in 0..TURNS {
        value = black_box(value ^ turn);
    }
    value
}
