//! This host's terminal: raw while keys go to the machine, and as it was found while a line is edited, and in the end.

use std::io;

use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// The terminal, which is as it was found again when this is dropped.
pub struct Terminal {
    found: Termios,
}

impl Terminal {
    /// The terminal that stdin is.
    ///
    /// # Errors
    /// If it is none.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            found: tcgetattr(stdin())?,
        })
    }

    /// Keys come at once and as they are, and output goes as it is.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn raw(&self) -> io::Result<()> {
        let mut raw = self.found.clone();
        raw.make_raw();
        Ok(tcsetattr(stdin(), OptionalActions::Now, &raw)?)
    }

    /// As it was found.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn as_found(&self) -> io::Result<()> {
        Ok(tcsetattr(stdin(), OptionalActions::Now, &self.found)?)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // One that is gone needs no more.
        let _ = self.as_found();
    }
}
