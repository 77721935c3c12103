//! What the small programs share: their arguments, what a wrong one gets, and what they ask of each other.
//!
//! A program refuses with one line that names the argument and says what is allowed.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod arguments;
pub mod netload;
#[cfg(target_os = "none")]
pub mod request;
pub mod shares;
#[cfg(target_os = "none")]
mod start;

pub use arguments::{ArgumentError, Arguments};
#[cfg(target_os = "none")]
pub use start::{Deadline, parse, parse_timed};
