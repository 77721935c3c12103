//! The remote shell of machines that are booted from this working tree: its keys, where it is reached, and the client that
//! asks it.

mod client;
mod keys;
mod machines;

pub use client::{client, replace};
pub use keys::{file as keys, write_private};
pub use machines::Machines;
