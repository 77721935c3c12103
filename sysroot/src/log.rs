//! The kernel log as a place to write: a server's diagnostics, and the output of a program that has no other.

use ipc::abi::Handle;
use ipc::abi::startup::names;

use crate::{record, startup};

/// The handle to write to the log with, if this program was given one.
#[must_use]
pub fn handle() -> Option<Handle> {
    startup::handle(names::LOG).or_else(|| startup::handle(names::SYSTEM))
}

/// Appends bytes to the kernel log; lost if this program may not write there.
pub fn write(bytes: &[u8]) {
    if let Some(handle) = handle() {
        // A log that cannot be written to cannot be complained to either.
        let _ = record::log_write(handle, bytes);
    }
}
