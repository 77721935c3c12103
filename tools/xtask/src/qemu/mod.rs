//! The machine that the image boots on.

mod command;
mod kvm;
mod run;

pub use command::{Machine, Network, Off, Serial};
pub use run::boot;

/// What the guest writes to the debug-exit port when it powers off on request. QEMU exits with `(value << 1) | 1`.
pub const POWER_OFF: u32 = 0x10;
/// What the guest writes after a panic.
pub const PANIC: u32 = 0x11;

/// QEMU's exit status for a value written to the debug-exit port.
#[must_use]
pub const fn debug_exit(value: u32) -> i32 {
    ((value << 1) | 1) as i32
}
