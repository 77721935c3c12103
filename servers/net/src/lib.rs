//! The net server: one Ethernet device, IPv4 over it, and the UDP sockets of all programs. Its logic, tested on the host.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod device;
#[cfg(test)]
mod fake;
pub mod pace;
pub mod remote;
pub mod server;
pub mod settings;
pub mod stack;
