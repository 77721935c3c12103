//! Time since boot, in nanoseconds, and waiting for it.

use ipc::abi::NEVER;

use crate::{clock, startup, syscall};

pub use crate::clock::{MICROSECOND, MILLISECOND};

/// Nanoseconds since boot. Needs no system call.
#[must_use]
pub fn now() -> u64 {
    clock::nanoseconds(&startup::info(), syscall::rdtsc())
}

/// The deadline that is `nanoseconds` from now.
#[must_use]
pub fn after(nanoseconds: u64) -> u64 {
    now().saturating_add(nanoseconds)
}

/// Waits at least this long.
pub fn sleep(nanoseconds: u64) {
    // A deadline that never comes is none to sleep until.
    let deadline = after(nanoseconds).min(NEVER - 1);
    while now() < deadline {
        // The call has no other outcome than that the time has come; the loop is what decides.
        let _ = syscall::sleep(deadline);
    }
}
