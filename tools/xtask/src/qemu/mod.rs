//! The machine that the image boots on.

mod command;
mod cpu;
mod fit;
mod kvm;
mod run;

pub use command::{Machine, Network, REMOTE_SHELL_PORT, Serial};
pub use run::{boot, free_port};

pub use ipc::abi::layout::{EXIT_FAILURE as PANIC, EXIT_OFF as POWER_OFF, EXIT_REBOOT as REBOOT};

/// QEMU's exit status for a value written to the debug-exit port.
#[must_use]
pub const fn debug_exit(value: u32) -> i32 {
    ((value << 1) | 1) as i32
}
