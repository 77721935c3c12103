//! The contract between the kernel and programs: everything that crosses the system-call boundary.
//!
//! Numbers are declared once, here, and both sides are generated from them. Nothing in this module allocates or
//! depends on a serializer, so the kernel builds it alone.

pub mod error;
pub mod exit;
pub mod handle;
pub mod info;
pub mod inspect;
pub mod layout;
pub mod message;
pub mod monitor;
mod numbered;
pub mod power;
pub mod profile;
pub mod startup;
pub mod syscall;
pub mod trace;

pub use error::Error;
pub use handle::{Handle, ObjectType, Rights};
pub use message::{Delivery, Tag};
pub use power::PowerAction;
pub use syscall::Syscall;

/// Version of everything in this module; it counts from the first release on. A program compares it with that of the kernel, in the
/// information page, and of its loader, in the startup page, before it does anything else.
pub const ABI_VERSION: u32 = 1;

/// Instead of an interrupt line: one that a device signals by a message (MSI, MSI-X).
pub const BY_MESSAGE: u64 = u64::MAX;

/// A deadline that never comes. Deadlines are absolute nanoseconds since boot.
pub const NEVER: u64 = u64::MAX;

/// A deadline that has always passed: poll, do not wait.
pub const NOW: u64 = 0;
