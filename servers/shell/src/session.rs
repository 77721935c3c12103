//! What a command knows of who asked for it: somewhere to write, and whether they want it to end. Nothing here says what
//! carries the session.

use core::fmt;

use crate::protocol::Stop;

/// A session, as a command sees it. Writing fails only if the session is gone; the command then just returns.
pub trait Session: fmt::Write {
    /// Whether Ctrl-C was pressed since the command began, as far as the last write or [`Self::guard`] knows.
    fn interrupted(&self) -> bool;

    /// Says what Ctrl-C ends from now on, until the command returns or says otherwise. Answers whether it was pressed
    /// already: then the command must end that itself.
    fn guard(&mut self, stop: Stop) -> bool;
}
