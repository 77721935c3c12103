//! The line as the terminal shows it: the prompt and as much of the text around the cursor as one row holds.
//!
//! The row is redrawn with carriage return, erase to the end of the line (`ESC [ K`) and cursor forward (`ESC [ n C`):
//! nothing that depends on where a terminal wraps. A text wider than the row is shown through a window that moves by half
//! a row, so that typing at its edge does not redraw at every key. `<` in place of the prompt's blank and `>` behind the window
//! say that there is more text on that side.

use alloc::string::String;
use core::fmt::Write;

use profd::text;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::buffer::Buffer;

/// What asks for a line.
pub const PROMPT: &str = "> ";
/// Cursor to the first row, then everything erased.
pub const CLEAR_SCREEN: &str = "\x1b[H\x1b[2J";
/// Cursor to the start of its row, then that erased.
pub const CLEAR_ROW: &str = "\r\x1b[K";
/// Columns of the text, in a row of the terminal: two stay free for the echo of Ctrl-C, and the last one because a character
/// in it may wrap.
pub const COLUMNS: usize = text::COLUMNS - PROMPT.len() - 2 - 1;

/// Where the window begins and the cursor stands.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Columns of the text left of the window.
    first: usize,
}

impl View {
    /// Draws the prompt and the text over the row that the cursor is in.
    pub fn draw(&mut self, line: &Buffer, out: &mut String) {
        let cursor = line.before().width();
        if cursor < self.first || cursor > self.first + COLUMNS {
            self.first = cursor.saturating_sub(COLUMNS / 2);
        }
        let (mark, blank) = PROMPT.split_at(PROMPT.len() - 1);
        let left = if self.first > 0 { "<" } else { blank };
        let _ = write!(out, "\r{mark}{left}");
        let last = self.first + COLUMNS;
        let mut column = 0;
        for character in line.text().chars() {
            let start = column;
            column += width(character);
            let (from, to) = (start.max(self.first), column.min(last));
            if (from, to) == (start, column) {
                out.push(character);
            } else {
                // Half of a wide character is a blank, and none is nothing.
                out.extend(core::iter::repeat_n(' ', to.saturating_sub(from)));
            }
            if column > last {
                out.push('>');
                break;
            }
        }
        out.push_str("\x1b[K");
        // The marker of a text that goes on has a column, too.
        let shown = column.min(last + 1) - self.first;
        let target = cursor - self.first;
        if target != shown {
            let _ = write!(out, "\r\x1b[{}C", PROMPT.len() + target);
        }
    }

    /// Shows a character that was just inserted before the cursor.
    pub fn inserted(&mut self, line: &Buffer, character: char, out: &mut String) {
        let at_end = line.after().is_empty();
        if at_end && width(character) == 1 && line.before().width() <= self.first + COLUMNS {
            out.push(character);
        } else {
            self.draw(line, out);
        }
    }

    /// Clears the row.
    pub fn hide(&self, out: &mut String) {
        out.push_str(CLEAR_ROW);
    }

    /// Begins a new line: the window is at its start.
    pub fn reset(&mut self) {
        self.first = 0;
    }
}

fn width(character: char) -> usize {
    // Control characters, which have no width, never get into a line.
    character.width().unwrap_or(0)
}
