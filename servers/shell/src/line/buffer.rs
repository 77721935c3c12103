//! The line being edited: text and a cursor between two of its characters.

use alloc::string::String;

use super::LINE_MAX;

/// Text of at most [`LINE_MAX`] bytes and a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    text: String,
    /// Byte offset, always between characters.
    cursor: usize,
}

impl Buffer {
    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }
    /// The text before the cursor.
    pub fn before(&self) -> &str {
        &self.text[..self.cursor]
    }
    /// The text after the cursor.
    pub fn after(&self) -> &str {
        &self.text[self.cursor..]
    }
    /// Puts another text in place, the cursor at its end; what exceeds the limit is cut.
    pub fn set(&mut self, text: &str) {
        self.text.clear();
        self.cursor = 0;
        for character in text.chars() {
            if !self.insert(character) {
                break;
            }
        }
    }
    /// Takes the text out and leaves an empty line.
    pub fn take(&mut self) -> String {
        self.cursor = 0;
        core::mem::take(&mut self.text)
    }
    /// Inserts at the cursor; `false` if there is no room.
    pub fn insert(&mut self, character: char) -> bool {
        if self.text.len() + character.len_utf8() > LINE_MAX {
            return false;
        }
        self.text.insert(self.cursor, character);
        self.cursor += character.len_utf8();
        true
    }
    /// Moves one character to the left.
    pub fn left(&mut self) {
        self.cursor -= self.before().chars().next_back().map_or(0, char::len_utf8);
    }
    /// Moves one character to the right.
    pub fn right(&mut self) {
        self.cursor += self.after().chars().next().map_or(0, char::len_utf8);
    }
    /// Moves to the start of the word at or before the cursor.
    pub fn word_left(&mut self) {
        self.cursor = self.word_start();
    }
    /// Moves past the end of the word at or after the cursor.
    pub fn word_right(&mut self) {
        let after = self.after();
        let word = after.trim_start_matches(' ');
        let rest = word.trim_start_matches(|character| character != ' ');
        self.cursor += after.len() - rest.len();
    }
    /// Moves to the start.
    pub fn home(&mut self) {
        self.cursor = 0;
    }
    /// Moves to the end.
    pub fn end(&mut self) {
        self.cursor = self.text.len();
    }
    /// Deletes the character before the cursor.
    pub fn backspace(&mut self) {
        let end = self.cursor;
        self.left();
        self.text.drain(self.cursor..end);
    }
    /// Deletes the character after the cursor.
    pub fn delete(&mut self) {
        if !self.after().is_empty() {
            self.text.remove(self.cursor);
        }
    }
    /// Deletes from the cursor to the end.
    pub fn kill_to_end(&mut self) {
        self.text.truncate(self.cursor);
    }
    /// Deletes from the start to the cursor.
    pub fn kill_to_start(&mut self) {
        self.text.drain(..self.cursor);
        self.cursor = 0;
    }
    /// Deletes the word before the cursor.
    pub fn kill_word(&mut self) {
        let start = self.word_start();
        self.text.drain(start..self.cursor);
        self.cursor = start;
    }

    fn word_start(&self) -> usize {
        let word = self.before().trim_end_matches(' ');
        word.trim_end_matches(|character| character != ' ').len()
    }
}
