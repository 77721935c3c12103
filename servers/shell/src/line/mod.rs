//! Line editing: from bytes that a terminal or a pipe sends to whole lines, with the echo that shows them.
//!
//! Bytes become keys ([`keys`]), keys change a line ([`buffer`]) or fetch an old one ([`history`]), and what changed is
//! drawn with nothing but carriage return, erase to the end of the line and cursor forward ([`view`]).

pub mod buffer;
pub mod editor;
pub mod history;
pub mod keys;
#[cfg(test)]
mod tests;
pub mod view;

pub use editor::{Editor, Event};
pub use keys::{Decoder, Key};

/// Longest line, in bytes.
pub const LINE_MAX: usize = 1024;
