//! The console server: one 16550 UART as a stream of bytes. Its logic, tested on the host.
//!
//! One thread does everything: it receives calls with the interrupt's notification bound, so a single wait covers
//! callers, the interrupt and the watch over a transmitter whose interrupt was lost.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod driver;
#[cfg(test)]
mod fake;
pub mod registers;
#[cfg(test)]
mod tests;
pub mod uart;
