//! The row of a terminal that the cursor is in, as the machine's shell draws it: with text, CR, LF, `ESC [ K` and `ESC [ n C`.

/// First character of the machine's prompt; the second one is a blank, or `<` if the line begins left of what is shown.
const MARK: char = '>';

/// The row.
#[derive(Debug, Default)]
pub struct Row {
    cells: Vec<char>,
    column: usize,
    /// Bytes of an escape sequence or a character that is not there whole.
    begun: Vec<u8>,
    /// The prompt was drawn since the row began.
    prompt: bool,
}

/// Longest row, in characters, and longest escape sequence, in bytes: of what is longer the rest is left out.
const CELLS_MAX: usize = 4096;
const SEQUENCE_MAX: usize = 32;

impl Row {
    /// Takes a byte. Gives the row's text when it ends with this.
    pub fn feed(&mut self, byte: u8) -> Option<String> {
        match (self.begun.first(), byte) {
            (Some(&0x1b), _) => self.sequence(byte),
            (_, b'\n') => return Some(self.end()),
            (_, b'\r') => self.control(|row| row.column = 0),
            (_, 8) => self.control(|row| row.column = row.column.saturating_sub(1)),
            (_, 0x1b) => self.begun = vec![byte],
            (_, 0x20..=0x7e) => self.control(|row| row.put(byte.into())),
            (_, 0x80..) => self.part(byte),
            _ => {}
        }
        None
    }

    /// Whether the machine waits for a line here.
    pub const fn is_prompt(&self) -> bool {
        self.prompt
    }

    /// What stands behind the prompt.
    pub fn typed(&self) -> String {
        self.cells.iter().skip(2).collect()
    }

    /// A byte that ends a character that was cut.
    fn control(&mut self, act: impl FnOnce(&mut Self)) {
        self.begun.clear();
        act(self);
    }

    fn end(&mut self) -> String {
        let row = core::mem::take(self);
        row.cells.into_iter().collect()
    }

    fn put(&mut self, character: char) {
        if self.column >= CELLS_MAX {
            return;
        }
        if self.cells.len() <= self.column {
            self.cells.resize(self.column + 1, ' ');
        }
        self.cells[self.column] = character;
        self.column += 1;
    }

    /// A byte of a character that has several.
    fn part(&mut self, byte: u8) {
        self.begun.push(byte);
        let character = match str::from_utf8(&self.begun) {
            Ok(text) => text.chars().next(),
            Err(error) => error.error_len().map(|_| char::REPLACEMENT_CHARACTER),
        };
        if let Some(character) = character {
            self.begun.clear();
            self.put(character);
        }
    }

    /// A byte of an escape sequence: `ESC [`, digits, and a letter.
    fn sequence(&mut self, byte: u8) {
        self.begun.push(byte);
        let is_over = match self.begun.len() {
            2 => byte != b'[',
            SEQUENCE_MAX => true,
            _ => (0x40..0x7f).contains(&byte),
        };
        if !is_over {
            return;
        }
        let sequence = core::mem::take(&mut self.begun);
        let number = sequence.get(2..sequence.len() - 1);
        let number = number.and_then(|digits| str::from_utf8(digits).ok());
        let number: Option<usize> = number.and_then(|digits| digits.parse().ok());
        match byte {
            b'K' => {
                self.cells.truncate(self.column);
                let mut cells = self.cells.iter();
                self.prompt = cells.next() == Some(&MARK)
                    && cells.next().is_some_and(|cell| [' ', '<'].contains(cell));
            }
            b'C' => self.column = (self.column + number.unwrap_or(1)).min(CELLS_MAX),
            b'H' | b'J' => drop(self.end()),
            _ => {}
        }
    }
}

/// Whether a row that has ended is the prompt with a line behind it.
pub fn is_echo(row: &str) -> bool {
    let mut characters = row.chars();
    characters.next() == Some(MARK)
        && characters
            .next()
            .is_none_or(|cell| [' ', '<'].contains(&cell))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows that end, and the one that has not.
    fn rows(bytes: &[u8]) -> (Vec<String>, Row) {
        let mut row = Row::default();
        let ended = bytes.iter().filter_map(|&byte| row.feed(byte)).collect();
        (ended, row)
    }

    #[test]
    fn text_is_drawn_over_and_erased() {
        let (ended, _) = rows(b"abc\rx\n12345\r\x1b[2C\x1b[K9\nab\x08c\n\x07\r\n");
        assert_eq!(ended, ["xbc", "129", "ac", ""]);
    }

    #[test]
    fn characters_are_put_together_and_damage_is_marked() {
        let (ended, _) = rows("für\n".as_bytes());
        assert_eq!(ended, ["für"]);
        let (ended, _) = rows(b"a\xffb\xc3\n");
        assert_eq!(ended, ["a\u{fffd}b"]);
    }

    #[test]
    fn a_prompt_is_what_the_shell_draws_and_no_output_that_looks_like_it() {
        let is_prompt = |bytes: &[u8]| rows(bytes).1.is_prompt();
        assert!(is_prompt(b"\r> \x1b[K"));
        assert!(is_prompt(b"text\r\n\r> ps\x1b[K"));
        assert!(is_prompt(b"\r><middle of a line\x1b[K\r\x1b[9C"));
        assert!(!is_prompt(b"> "));
        assert!(!is_prompt(b"\r> ps\x1b[K\r\n"));
        assert!(!is_prompt(b"\r> ps\x1b[K\r\x1b[K"));
        let (_, row) = rows(b"\r> p\x1b[Ks -a");
        assert_eq!(row.typed(), "ps -a");
    }

    #[test]
    fn nothing_makes_a_row_longer_than_it_may_be() {
        let mut bytes = vec![b'x'; 3 * CELLS_MAX];
        bytes.extend_from_slice(b"\x1b[99999999999C\x1b[4000C\x1b[4000Cy");
        bytes.extend_from_slice(&[0x1b, b'[']);
        bytes.extend_from_slice(&[b'1'; 1000]);
        let (_, row) = rows(&bytes);
        assert!(row.cells.len() <= CELLS_MAX && row.begun.len() <= SEQUENCE_MAX);
    }
}
