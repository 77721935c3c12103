//! Lines that were entered before, and the way back to the one being written.

use alloc::collections::VecDeque;
use alloc::string::String;

/// Lines kept.
const LINES: usize = 32;

/// The last lines of a session.
#[derive(Clone, Debug, Default)]
pub struct History {
    lines: VecDeque<String>,
    /// How far back the shown line is; 0 is the line being written.
    back: usize,
    /// The line being written, while an older one is shown.
    draft: String,
}

impl History {
    /// Keeps a line, unless it repeats the last one, and returns to the line being written.
    pub fn push(&mut self, line: &str) {
        self.back = 0;
        self.draft.clear();
        if self.lines.back().is_some_and(|last| last == line) {
            return;
        }
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line.into());
    }

    /// Returns to the line being written, and forgets it.
    pub fn leave(&mut self) {
        self.back = 0;
        self.draft.clear();
    }

    /// The next older line; `shown` is what is on the screen. `None` if there is none.
    pub fn older(&mut self, shown: &str) -> Option<&str> {
        if self.back == self.lines.len() {
            return None;
        }
        if self.back == 0 {
            self.draft = shown.into();
        }
        self.back += 1;
        Some(self.shown())
    }

    /// The next newer line, at last the one being written. `None` if that is shown already.
    pub fn newer(&mut self) -> Option<&str> {
        self.back = self.back.checked_sub(1)?;
        Some(self.shown())
    }

    fn shown(&self) -> &str {
        match self.back {
            0 => &self.draft,
            back => &self.lines[self.lines.len() - back],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_and_down_lead_back_to_the_draft() {
        let mut history = History::default();
        assert_eq!(history.older("x"), None);
        assert_eq!(history.newer(), None);
        for line in ["one", "two", "two"] {
            history.push(line);
        }
        assert_eq!(history.older("draft"), Some("two"));
        assert_eq!(history.older("two"), Some("one"));
        assert_eq!(history.older("one"), None);
        assert_eq!(history.newer(), Some("two"));
        assert_eq!(history.newer(), Some("draft"));
        assert_eq!(history.newer(), None);
    }

    #[test]
    fn the_oldest_lines_make_room() {
        let mut history = History::default();
        for number in 0..LINES + 5 {
            history.push(&alloc::format!("{number}"));
        }
        let mut oldest = None;
        while let Some(line) = history.older("") {
            oldest = Some(String::from(line));
        }
        assert_eq!(oldest.as_deref(), Some("5"));
    }
}
