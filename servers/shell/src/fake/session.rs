//! A session for tests: what is written and said to it is remembered, and Ctrl-C comes when the test wants it.

use std::fmt;

use ipc::proto::remote::Role;

use crate::protocol::Stop;
use crate::session::{Leave, Session};

/// The session. Ctrl-C is pressed once `interrupt_after` writes or guards were made.
#[derive(Default)]
pub struct FakeSession {
    /// It may look, and nothing else.
    pub observes: bool,
    /// It is one that can be left, and was, so many times.
    pub left: Option<usize>,
    pub text: String,
    pub guards: Vec<Stop>,
    /// Each start and end of pages.
    pub pages: Vec<bool>,
    pub interrupt_after: Option<usize>,
    pub calls: usize,
    /// Ctrl-C was pressed, and a guard has heard of it or not.
    interrupted: bool,
    unheard: bool,
}

impl FakeSession {
    fn call(&mut self) {
        self.calls += 1;
        if self.interrupt_after.is_some_and(|after| self.calls > after) {
            self.interrupt_after = None;
            (self.interrupted, self.unheard) = (true, true);
            // A line that has no end yet is not shown.
            let shown = self.text.rfind('\n').map_or(0, |at| at + 1);
            self.text.truncate(shown);
        }
    }
}

impl fmt::Write for FakeSession {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.call();
        if self.unheard {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

impl Session for FakeSession {
    fn role(&self) -> Role {
        match self.observes {
            true => Role::Observe,
            false => Role::Control,
        }
    }
    fn leave(&mut self) -> Leave {
        let ends = self.left.is_some();
        self.left = self.left.map(|times| times + 1);
        Leave {
            how: "leave by another door",
            ends,
        }
    }
    fn interrupted(&self) -> bool {
        self.interrupted
    }
    fn guard(&mut self, stop: Stop) -> bool {
        self.call();
        self.guards.push(stop);
        std::mem::take(&mut self.unheard)
    }
    fn page(&mut self, on: bool) -> fmt::Result {
        self.pages.push(on);
        Ok(())
    }
}
