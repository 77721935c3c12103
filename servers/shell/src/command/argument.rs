//! What arguments are, to complete and to read them.

use core::fmt;

use profd::request::number;

use super::Quoted;

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Nothing that could be completed, such as a number.
    Other,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// The name of a command.
    Command,
    /// A program that can be run.
    Program,
    /// The id of a process.
    Pid,
    /// The beginning of another command, with arguments of its own.
    Line,
}

/// Not a process id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotAPid<'a>(&'a str);

impl fmt::Display for NotAPid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: not a pid that `ps` shows", Quoted(self.0))
    }
}

/// The process id that a word is.
pub(super) fn pid(word: &str) -> Result<u32, NotAPid<'_>> {
    number(word, 1..=u32::MAX).ok_or(NotAPid(word))
}
