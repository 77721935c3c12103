//! What every program is built against: entry point, system calls, heap, threads, time, output and panics.
//!
//! A program is `fn main` and [`entry!`]. It begins with an empty heap and the handles that its starter put into the startup
//! page ([`startup`]); a server receives calls through a [`Port`], a client makes them through a [`Connection`].
//!
//! Unsafe code is confined to the modules that own an invariant: [`syscall`] (the instruction), `buffer` (the thread's IPC
//! page), `heap`, [`mapping`] and [`registers`] (address space), [`thread`] (stacks), `lock` and [`sync`] (who may reach a
//! value), `park` (the thread's own words), [`mod@entry`] and [`startup`] (what the loader left), [`process`] (other address
//! spaces), [`random`] (an instruction that not every processor has), `panic` (the breakpoint). The rest is safe code over
//! them. On the host only the pure parts exist, for their tests.
#![cfg_attr(not(any(test, loom)), no_std)]

extern crate alloc;

pub mod clock;
#[cfg(any(target_os = "none", test))]
mod lock;
#[cfg(any(target_os = "none", test))]
mod park;
pub mod ranges;
#[cfg(any(target_os = "none", all(test, not(loom))))]
pub mod sync;

#[cfg(target_os = "none")]
mod buffer;
#[cfg(target_os = "none")]
pub mod connection;
#[cfg(target_os = "none")]
pub mod entry;
#[cfg(target_os = "none")]
pub mod handle;
#[cfg(target_os = "none")]
mod heap;
#[cfg(target_os = "none")]
pub mod log;
#[cfg(target_os = "none")]
pub mod mapping;
#[cfg(target_os = "none")]
pub mod net;
#[cfg(target_os = "none")]
pub mod output;
#[cfg(target_os = "none")]
mod panic;
#[cfg(target_os = "none")]
pub mod port;
#[cfg(target_os = "none")]
pub mod process;
#[cfg(target_os = "none")]
pub mod random;
#[cfg(target_os = "none")]
pub mod record;
#[cfg(target_os = "none")]
pub mod registers;
#[cfg(target_os = "none")]
pub mod startup;
#[cfg(target_os = "none")]
pub mod syscall;
#[cfg(target_os = "none")]
pub mod thread;
#[cfg(target_os = "none")]
pub mod time;

#[cfg(target_os = "none")]
pub use {
    connection::Connection,
    entry::{ExitCode, exit},
    handle::OwnedHandle,
    mapping::Mapping,
    port::{Event, Port},
    registers::Registers,
    sync::{Mutex, MutexGuard},
};
