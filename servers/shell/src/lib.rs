//! The shell server: sessions and the commands they run. Its logic, tested on the host.
//!
//! A session is a [`terminal`], which is served by one thread and knows what the screen shows, and two threads that call it:
//! one brings what the user types, one fetches lines and runs [`command`]s. Commands write to a [`session`] and act
//! through the [`system`]; they know nothing of what carries either.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod banner;
pub mod command;
pub mod completion;
pub mod ending;
#[cfg(test)]
mod fake;
pub mod format;
pub mod inspect;
pub mod jobs;
pub mod line;
pub mod pause;
pub mod persist;
pub mod pieces;
pub mod protocol;
pub mod session;
pub mod system;
pub mod terminal;
pub mod text;
pub mod words;
