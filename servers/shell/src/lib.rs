//! The shell server: sessions and the commands they run. Its logic, tested on the host.
//!
//! A session is a [`terminal`], which is served by one thread and knows what the screen shows, and two threads that call it:
//! one brings what the user types, one fetches lines and runs [`command`]s. Commands write to a [`session`] and act
//! through the [`system`]; they know nothing of what carries either. A session of one command has an [`exec`] in the terminal's
//! place.
//!
//! Two programs are made of it: the shell, whose session is on the console, and `session`, which the shell starts for each session
//! that comes from elsewhere ([`door`]). What both do over the system's handles is `process`.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod banner;
pub mod command;
pub mod completion;
pub mod crlf;
pub mod door;
pub mod ending;
pub mod exec;
#[cfg(test)]
mod fake;
pub mod format;
pub mod inspect;
pub mod jobs;
pub mod line;
pub mod pause;
pub mod persist;
pub mod pieces;
#[cfg(target_os = "none")]
pub mod process;
pub mod protocol;
pub mod session;
pub mod system;
pub mod terminal;
pub mod text;
pub mod words;
