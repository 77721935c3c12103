//! The lines that a session begins with.

use alloc::format;
use alloc::string::String;

use ipc::proto::remote::Opened;
use profd::text::counted;

use crate::format::PAGE_KIB;
use crate::system::System;

/// What the machine is, and how to leave.
pub fn banner(system: &mut dyn System, leave: &str) -> String {
    let cpus = counted(system.cpus(), "cpu");
    // RAM that the firmware keeps for itself is not counted, so the sum is a little short of what the machine has.
    let mib = |pages: u64| pages.saturating_mul(PAGE_KIB).div_ceil(1024);
    match system.memory() {
        Ok(memory) => format!("Sonde: {cpus}, {} MiB ({leave})\n", mib(memory.total)),
        Err(error) => format!("Sonde: {cpus}, memory unknown: {error} ({leave})\n"),
    }
}

/// Who has a session that came from elsewhere, and what it may do.
#[must_use]
pub fn greeting(opened: &Opened) -> String {
    let Opened {
        number, role, peer, ..
    } = opened;
    format!("session {number}, from {peer}, with the role {role}\n")
}
