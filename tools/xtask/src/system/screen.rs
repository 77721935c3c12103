//! What a terminal would show: the guest's output with its carriage returns and escape sequences obeyed, as far as one row
//! goes. Nothing that has scrolled up changes any more.

/// Where in the byte stream we are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// Inside a control sequence (ECMA-48, section 5.4), with its number so far, until its final byte.
    Sequence(usize),
}

/// Takes bytes as they come, in pieces of any size, and keeps what they show.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    /// The rows above the one the cursor is in, each ended by a newline.
    above: Vec<u8>,
    /// The cursor's row: the bytes of each character.
    row: Vec<Vec<u8>>,
    /// The cursor's column.
    column: usize,
    state: State,
    /// Bytes of the text that readers are done with.
    consumed: usize,
}

impl Screen {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.state = match (self.state, byte) {
                (State::Text, 0x1b) => State::Escape,
                (State::Text, _) => {
                    self.put(byte);
                    State::Text
                }
                (State::Escape, b'[') => State::Sequence(0),
                (State::Escape, _) => State::Text,
                (State::Sequence(number), b'0'..=b'9') => {
                    State::Sequence((number * 10 + usize::from(byte - b'0')).min(10_000))
                }
                (State::Sequence(number), 0x40..=0x7e) => {
                    self.obey(byte, number);
                    State::Text
                }
                (State::Sequence(number), _) => State::Sequence(number),
            };
        }
    }

    /// Everything shown so far.
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        [&self.above[..], &self.row.concat()].concat()
    }

    /// What is shown and not yet consumed.
    #[must_use]
    pub fn new_text(&self) -> Vec<u8> {
        self.text().split_off(self.consumed)
    }

    /// Marks so many more bytes as read.
    pub fn consume(&mut self, bytes: usize) {
        self.consumed += bytes;
    }

    fn put(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.above.extend(self.row.concat());
                self.above.push(b'\n');
                self.row.clear();
                self.column = 0;
            }
            b'\r' => self.column = 0,
            0x08 => self.column = self.column.saturating_sub(1),
            // The rest of a character of UTF-8.
            0x80..=0xbf if self.column > 0 => self.row[self.column - 1].push(byte),
            0x20..=0x7e | 0x80.. => {
                self.row
                    .resize(self.row.len().max(self.column + 1), vec![b' ']);
                self.row[self.column] = vec![byte];
                self.column += 1;
            }
            _ => {}
        }
    }

    /// A control sequence: cursor forward, and those that erase what is right of the cursor.
    fn obey(&mut self, last: u8, number: usize) {
        match last {
            b'C' => self.column += number.max(1),
            b'H' => self.column = 0,
            b'J' | b'K' => {
                self.row.truncate(self.column);
                // What takes the place of erased text is new, whoever had read what was there.
                self.consumed = self.consumed.min(self.text().len());
            }
            _ => {}
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
        String::from_utf8(screen.text()).unwrap()
    }

    #[test]
    fn control_bytes_are_not_text() {
        assert_eq!(shown(&["a\r\nb\x07c\0"]), "a\nbc");
        assert_eq!(shown(&["\x1b[2J\x1b[1;31mred\x1b[0m\x1b7x"]), "redx");
        assert_eq!(shown(&["one\x1b", "[", "3", "8m", "two"]), "onetwo");
        assert_eq!(shown(&["é", "\u{20ac}x"]), "é€x");
    }

    #[test]
    fn a_row_can_be_drawn_again() {
        assert_eq!(shown(&["ab\x08 \x08c\n\x08d"]), "ac\nd");
        assert_eq!(shown(&["> hel\r> hello\x1b[K"]), "> hello");
        assert_eq!(shown(&["> hello\r> he\x1b[K\r\x1b[4C!"]), "> he!");
        assert_eq!(shown(&["x\x1b[3Cy"]), "x   y");
    }

    #[test]
    fn text_in_the_place_of_a_consumed_row_is_new() {
        let mut screen = Screen::default();
        screen.feed(b"one\n> ");
        screen.consume(6);
        assert_eq!(screen.new_text(), b"");
        screen.feed(b"ab");
        assert_eq!(screen.new_text(), b"ab");
        screen.feed(b"\r\x1b[Kkilled\n> ab");
        assert_eq!(screen.new_text(), b"killed\n> ab");
    }
}
