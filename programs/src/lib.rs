//! What the small programs share: their arguments, and what a wrong one gets.
//!
//! A program refuses with one line that names the argument and says what is allowed.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod arguments;
pub mod shares;
#[cfg(target_os = "none")]
mod start;

pub use arguments::{ArgumentError, Arguments};
#[cfg(target_os = "none")]
pub use start::{Deadline, parse, parse_timed};
