//! The net server: one Ethernet device, IPv4 over it, and the UDP sockets of all programs. Its logic, tested on the host.
#![cfg_attr(not(any(test, feature = "fake")), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod device;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
pub mod pace;
pub mod remote;
pub mod server;
pub mod settings;
pub mod stack;
