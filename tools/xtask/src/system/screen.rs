//! What a terminal would show, as plain text: the guest's output without carriage returns and escape sequences.

/// Where in the byte stream we are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// Inside a control sequence (ECMA-48, section 5.4), until its final byte.
    Sequence,
}

/// Takes bytes as they come, in pieces of any size, and keeps the text.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    text: Vec<u8>,
    state: State,
}

impl Screen {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.state = match (self.state, byte) {
                (State::Text, 0x1b) => State::Escape,
                (State::Text, b'\r' | 0x07) => State::Text,
                (State::Text, 0x08) => {
                    self.erase();
                    State::Text
                }
                (State::Text, _) => {
                    self.text.push(byte);
                    State::Text
                }
                (State::Escape, b'[') => State::Sequence,
                (State::Escape, _) | (State::Sequence, 0x40..=0x7e) => State::Text,
                (State::Sequence, _) => State::Sequence,
            };
        }
    }

    /// All text so far.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// A backspace: takes the last character back, but never a line.
    fn erase(&mut self) {
        if self.text.last().is_some_and(|&last| last != b'\n') {
            self.text.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&str]) -> String {
        let mut screen = Screen::default();
        for piece in pieces {
            screen.feed(piece.as_bytes());
        }
        String::from_utf8(screen.text().to_vec()).unwrap()
    }

    #[test]
    fn control_bytes_are_not_text() {
        assert_eq!(shown(&["a\r\nb\x07c"]), "a\nbc");
        assert_eq!(shown(&["\x1b[2J\x1b[1;31mred\x1b[0m\x1b7x"]), "redx");
        assert_eq!(shown(&["one\x1b", "[", "3", "8m", "two"]), "onetwo");
    }

    #[test]
    fn backspace_takes_back_within_the_line() {
        assert_eq!(shown(&["ab\x08 \x08c\n\x08d"]), "ac\nd");
    }
}
