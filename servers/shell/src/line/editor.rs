//! The editor: keys in, lines and echo out.

use alloc::string::String;
use core::fmt::Write;

use super::LINE_MAX;
use super::buffer::Buffer;
use super::history::History;
use super::keys::Key;
use super::view::{CLEAR_SCREEN, View};

/// What a key led to, beyond a changed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A line was entered; it is not blank. The row is left behind and there is no prompt.
    Line(String),
    /// Ctrl-D on an empty line. The prompt stands.
    Leave,
    /// The word before the cursor is to be completed.
    Tab,
}

/// One session's line, history and row.
#[derive(Clone, Debug, Default)]
pub struct Editor {
    line: Buffer,
    history: History,
    view: View,
    /// Some characters did not fit: the line must not be run, as it is not what was typed.
    overlong: bool,
}

impl Editor {
    /// Draws the prompt and what is typed so far, over the row that the cursor is in.
    pub fn show(&mut self, out: &mut String) {
        self.view.draw(&self.line, out);
    }

    /// Clears the row, to write something else there; [`Self::show`] brings it back.
    pub fn hide(&self, out: &mut String) {
        self.view.hide(out);
    }

    /// The text of the line, and the part of it before the cursor.
    pub fn line(&self) -> (&str, &str) {
        (self.line.text(), self.line.before())
    }

    /// Takes a key and writes what it changes on the screen.
    pub fn key(&mut self, key: Key, out: &mut String) -> Option<Event> {
        match key {
            Key::Char(character) => {
                if self.line.insert(character) {
                    self.view.inserted(&self.line, character, out);
                } else {
                    self.overlong = true;
                }
                return None;
            }
            Key::Enter => return self.enter(out),
            Key::Tab => return Some(Event::Tab),
            Key::Interrupt => {
                out.push_str("^C\n");
                self.abandon();
            }
            Key::EndOfInput if self.line.text().is_empty() => return Some(Event::Leave),
            Key::EndOfInput | Key::Delete => self.line.delete(),
            Key::Backspace => self.line.backspace(),
            Key::Left => self.line.left(),
            Key::Right => self.line.right(),
            Key::WordLeft => self.line.word_left(),
            Key::WordRight => self.line.word_right(),
            Key::Home => self.line.home(),
            Key::End => self.line.end(),
            Key::KillToEnd => self.line.kill_to_end(),
            Key::KillWord => self.line.kill_word(),
            Key::KillToStart => {
                self.line.kill_to_start();
                self.overlong &= !self.line.text().is_empty();
            }
            Key::Up | Key::Down => self.recall(key),
            Key::Clear => out.push_str(CLEAR_SCREEN),
        }
        self.show(out);
        None
    }

    /// Inserts a text at the cursor; `false` if there is no room for all of it, and then nothing changes.
    pub fn insert(&mut self, text: &str, out: &mut String) -> bool {
        if self.line.text().len() + text.len() > LINE_MAX {
            return false;
        }
        for character in text.chars() {
            self.line.insert(character);
        }
        self.show(out);
        true
    }

    fn enter(&mut self, out: &mut String) -> Option<Event> {
        out.push('\n');
        self.view.reset();
        if self.overlong {
            let _ = writeln!(out, "line too long: at most {LINE_MAX} bytes");
            self.abandon();
            self.show(out);
            return None;
        }
        let line = self.line.take();
        if line.trim().is_empty() {
            self.history.leave();
            self.show(out);
            return None;
        }
        self.history.push(&line);
        Some(Event::Line(line))
    }

    fn recall(&mut self, key: Key) {
        let recalled = match key {
            Key::Up => self.history.older(self.line.text()),
            _ => self.history.newer(),
        };
        if let Some(line) = recalled {
            self.line.set(line);
            self.overlong = false;
        }
    }

    fn abandon(&mut self) {
        self.line.take();
        self.history.leave();
        self.view.reset();
        self.overlong = false;
    }
}
