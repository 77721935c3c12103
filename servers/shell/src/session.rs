//! What a command knows of who asked for it: somewhere to write, and whether they want it to end. Nothing here says what
//! carries the session.

use core::fmt;

use ipc::proto::remote::Role;

use crate::protocol::Stop;

/// How a session is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// In a line.
    pub how: &'static str,
    /// It ends by itself when its user is done; otherwise it has to be told how.
    pub ends: bool,
}

/// A session, as a command sees it.
///
/// Writing fails if the session is gone, and once Ctrl-C was pressed and no [`Self::guard`] has taken notice: in both cases
/// the command just returns the error. So the output of every command ends at Ctrl-C, and none has to ask.
pub trait Session: fmt::Write {
    /// What who asks may do.
    fn role(&self) -> Role;

    /// Ends the session with this line, if it can be ended. Answers how it is left.
    fn leave(&mut self) -> Leave;

    /// Whether Ctrl-C was pressed since the line began, as far as the last write or [`Self::guard`] knows.
    fn interrupted(&self) -> bool;

    /// Says what Ctrl-C ends from now on, until the command returns or says otherwise. Answers whether it was pressed
    /// since the last time, or since the line began: then the command must end that itself. It can write again.
    fn guard(&mut self, stop: Stop) -> bool;

    /// Says whether output stops after each page from now on, until the line is done.
    ///
    /// # Errors
    /// As for writing.
    fn page(&mut self, on: bool) -> fmt::Result;
}
