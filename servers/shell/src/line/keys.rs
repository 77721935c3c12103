//! From bytes to keys: UTF-8, control characters, and the escape sequences of ECMA-48 that terminals send for keys.
//!
//! A sequence that is unknown is swallowed whole. One that is cut ends at the first control character, which counts as
//! itself: whatever came before, a carriage return ends the line and Ctrl-C interrupts. Bytes that are not UTF-8 become
//! U+FFFD, so that a damaged line never looks like another, sound one.

/// What a user did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named as what it does")]
pub enum Key {
    /// A character that can be shown; never a control character.
    Char(char),
    Enter,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    Up,
    Down,
    KillToEnd,
    KillToStart,
    KillWord,
    /// Clear the screen.
    Clear,
    /// Complete the word.
    Tab,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D: delete, or leave where there is nothing to delete.
    EndOfInput,
}

/// The byte of Ctrl-C.
pub const INTERRUPT: u8 = 0x03;
/// The byte of Ctrl-Q, DC1 of ECMA-48 and XON of terminals.
pub const GO_ON: u8 = 0x11;
/// The byte of Ctrl-S, DC3 and XOFF.
pub const HOLD: u8 = 0x13;
const BELL: u8 = 0x07;
const ESCAPE: u8 = 0x1b;

#[derive(Clone, Copy, Debug)]
enum State {
    Ground,
    /// Inside a character of `need` bytes, `have` of which are in `bytes`.
    Character {
        bytes: [u8; 4],
        have: usize,
        need: usize,
    },
    /// After ESC.
    Escape,
    /// After ESC O, or ESC [ [ of the Linux console: one byte follows.
    One,
    /// After ESC [.
    Control(Parameters),
    /// Inside a string for the terminal (OSC, DCS and the like), which BEL or another ESC ends.
    Text,
}

/// The first two numbers of a control sequence.
#[derive(Clone, Copy, Debug, Default)]
struct Parameters {
    numbers: [u16; 2],
    index: usize,
    /// Something came that no key sends.
    odd: bool,
    empty_so_far: bool,
}

/// Turns bytes into keys, across any cuts between them.
#[derive(Clone, Debug)]
pub struct Decoder {
    state: State,
    /// The last byte was a carriage return: a line feed right after it belongs to it.
    after_return: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            state: State::Ground,
            after_return: false,
        }
    }
}

impl Decoder {
    /// Takes a byte; gives the keys that it completes. There are two if it also ended a character that was cut.
    pub fn feed(&mut self, byte: u8) -> [Option<Key>; 2] {
        let line_feed_of_return = byte == b'\n' && self.after_return;
        self.after_return = byte == b'\r';
        if line_feed_of_return {
            return [None, None];
        }
        let state = core::mem::replace(&mut self.state, State::Ground);
        match state {
            State::Character { bytes, have, need } => self.character(bytes, have, need, byte),
            _ if byte == ESCAPE => {
                self.state = State::Escape;
                [None, None]
            }
            State::Ground => [self.ground(byte), None],
            // A string may hold any byte that is no control; the rest of a sequence is ASCII.
            State::Text if byte >= b' ' => {
                self.state = State::Text;
                [None, None]
            }
            State::Text if byte == BELL => [None, None],
            State::Text => [self.ground(byte), None],
            _ if !(b' '..0x7f).contains(&byte) => [self.ground(byte), None],
            State::Escape => [self.escape(byte), None],
            State::One => [plain(byte), None],
            State::Control(parameters) => [self.control(parameters, byte), None],
        }
    }

    fn ground(&mut self, byte: u8) -> Option<Key> {
        Some(match byte {
            b' '..=b'~' => Key::Char(char::from(byte)),
            b'\t' => Key::Tab,
            b'\r' | b'\n' => Key::Enter,
            0x01 => Key::Home,
            0x02 => Key::Left,
            INTERRUPT => Key::Interrupt,
            0x04 => Key::EndOfInput,
            0x05 => Key::End,
            0x06 => Key::Right,
            0x08 | 0x7f => Key::Backspace,
            0x0b => Key::KillToEnd,
            0x0c => Key::Clear,
            0x0e => Key::Down,
            0x10 => Key::Up,
            0x15 => Key::KillToStart,
            0x17 => Key::KillWord,
            0xc2..=0xdf => return self.start(byte, 2),
            0xe0..=0xef => return self.start(byte, 3),
            0xf0..=0xf4 => return self.start(byte, 4),
            0x80.. => Key::Char(char::REPLACEMENT_CHARACTER),
            _ => return None,
        })
    }

    fn start(&mut self, byte: u8, need: usize) -> Option<Key> {
        self.state = State::Character {
            bytes: [byte, 0, 0, 0],
            have: 1,
            need,
        };
        None
    }

    fn character(
        &mut self,
        mut bytes: [u8; 4],
        have: usize,
        need: usize,
        byte: u8,
    ) -> [Option<Key>; 2] {
        let bad = Some(Key::Char(char::REPLACEMENT_CHARACTER));
        if byte & 0xc0 != 0x80 {
            if byte == ESCAPE {
                self.state = State::Escape;
                return [bad, None];
            }
            return [bad, self.ground(byte)];
        }
        bytes[have] = byte;
        let have = have + 1;
        if have < need {
            self.state = State::Character { bytes, have, need };
            return [None, None];
        }
        let text = core::str::from_utf8(&bytes[..need]).ok();
        match text.and_then(|text| text.chars().next()) {
            Some(control) if control.is_control() => [None, None],
            Some(character) => [Some(Key::Char(character)), None],
            None => [bad, None],
        }
    }

    fn escape(&mut self, byte: u8) -> Option<Key> {
        match byte {
            b'[' => {
                self.state = State::Control(Parameters {
                    empty_so_far: true,
                    ..Parameters::default()
                });
            }
            b'O' => self.state = State::One,
            b']' | b'P' | b'X' | b'^' | b'_' => self.state = State::Text,
            b'b' => return Some(Key::WordLeft),
            b'f' => return Some(Key::WordRight),
            // An intermediate byte: one more follows.
            b' '..=b'/' => self.state = State::Escape,
            _ => {}
        }
        None
    }

    fn control(&mut self, mut parameters: Parameters, byte: u8) -> Option<Key> {
        if byte == b'[' && parameters.empty_so_far {
            // The Linux console's function keys; no key of ours has this form.
            parameters.odd = true;
        } else if (0x40..=0x7e).contains(&byte) {
            return parameters.key(byte);
        }
        parameters.empty_so_far = false;
        match byte {
            b'0'..=b'9' => {
                if let Some(number) = parameters.numbers.get_mut(parameters.index) {
                    *number = number
                        .saturating_mul(10)
                        .saturating_add(u16::from(byte - b'0'));
                }
            }
            b';' => parameters.index = (parameters.index + 1).min(2),
            _ => parameters.odd = true,
        }
        self.state = State::Control(parameters);
        None
    }
}

impl Parameters {
    fn key(self, last: u8) -> Option<Key> {
        const CTRL: u16 = 5;
        if self.odd {
            return None;
        }
        match (last, self.numbers) {
            (b'C', [_, CTRL]) => Some(Key::WordRight),
            (b'D', [_, CTRL]) => Some(Key::WordLeft),
            (b'~', [1 | 7, _]) => Some(Key::Home),
            (b'~', [4 | 8, _]) => Some(Key::End),
            (b'~', [3, _]) => Some(Key::Delete),
            (b'~', _) => None,
            _ => plain(last),
        }
    }
}

/// The key of a sequence without numbers, by its last byte.
fn plain(byte: u8) -> Option<Key> {
    Some(match byte {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut decoder = Decoder::default();
        bytes
            .iter()
            .flat_map(|&byte| decoder.feed(byte))
            .flatten()
            .collect()
    }
    fn typed(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    #[test]
    fn every_kind_of_line_end_ends_one_line() {
        assert_eq!(keys(b"\r\n\n\r\r\n"), [Key::Enter; 4]);
    }

    #[test]
    fn keys_of_a_terminal() {
        let table: &[(&[u8], Key)] = &[
            (b"\x1b[A", Key::Up),
            (b"\x1bOB", Key::Down),
            (b"\x1b[C", Key::Right),
            (b"\x1b[1;5C", Key::WordRight),
            (b"\x1b[1;5D", Key::WordLeft),
            (b"\x1b[1~", Key::Home),
            (b"\x1bOH", Key::Home),
            (b"\x1b[4~", Key::End),
            (b"\x1b[F", Key::End),
            (b"\x1b[3~", Key::Delete),
            (b"\x1bb", Key::WordLeft),
            (b"\x7f", Key::Backspace),
            (b"\x01", Key::Home),
            (b"\x0b", Key::KillToEnd),
        ];
        for &(bytes, key) in table {
            assert_eq!(keys(bytes), [key], "{bytes:?}");
        }
    }

    #[test]
    fn unknown_sequences_and_nuls_leave_nothing() {
        for bytes in [
            &b"\x1b[5~"[..],
            b"\x1b[200~",
            b"\x1b[<0;1;1M",
            b"\x1b[[A",
            b"\x1b(B",
            b"\x1bP1$r\x1b\\",
            b"\x1b]0;title\x07",
            b"\x1b[99999999999999;9;9;9z",
            b"\0\0",
            "\u{85}".as_bytes(),
        ] {
            assert_eq!(keys(&[bytes, b"x"].concat()), typed("x"), "{bytes:?}");
        }
    }

    #[test]
    fn a_cut_sequence_ends_at_the_next_control() {
        for cut in [
            &b"\x1b"[..],
            b"\x1b[",
            b"\x1b[1;",
            b"\x1bO",
            b"\x1b]0;t",
            b"\x1bP",
        ] {
            assert_eq!(keys(&[cut, b"\r"].concat()), [Key::Enter], "{cut:?}");
            assert_eq!(keys(&[cut, b"\x03"].concat()), [Key::Interrupt], "{cut:?}");
        }
    }

    #[test]
    fn utf8_is_read_and_what_is_not_is_shown_as_such() {
        assert_eq!(keys("aé→🦀".as_bytes()), typed("aé→🦀"));
        assert_eq!(keys(b"\xff\xc3(\xe2\x86\r"), {
            let mut expected = typed("\u{fffd}\u{fffd}(\u{fffd}");
            expected.push(Key::Enter);
            expected
        });
        assert_eq!(keys(b"\xed\xa0\x80"), typed("\u{fffd}"));
        assert_eq!(keys(b"\xc3\x1b[A"), [typed("\u{fffd}")[0], Key::Up]);
    }
}
