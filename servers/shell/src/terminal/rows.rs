//! Which rows of a screen output fills: what a page is measured in.
//!
//! A terminal wraps when a character comes that has no room in its row, so a row that is exactly full still
//! takes its line feed. Tabs, returns and wide characters count as they show; of control sequences (ECMA-48, section 5.4) only
//! the one of `clear` moves the cursor. A character that is cut between two writes counts as two.

use profd::text::COLUMNS;
use unicode_width::UnicodeWidthChar;

/// Columns from one tab stop to the next.
const TAB: usize = 8;

/// Inside a control sequence, or not.
#[derive(Clone, Copy, Debug, Default)]
enum Escape {
    #[default]
    None,
    Begun,
    Sequence,
}

/// The cursor's column, and the rows that are full.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows {
    column: usize,
    full: usize,
    escape: Escape,
}

impl Rows {
    /// Whether the cursor is at the start of a row.
    pub const fn fresh(&self) -> bool {
        self.column == 0
    }

    /// The cursor went to the start of a row by other means, and counting begins there.
    pub fn begin(&mut self) {
        *self = Self::default();
    }

    /// A page begins with the row that the cursor is in.
    pub fn begin_page(&mut self) {
        self.full = 0;
    }

    /// Takes what is about to be shown, up to where a row after the `most` first ones would begin; gives its length. A page
    /// that ends in the middle of a line has the cursor there, and the line goes on in the first row of the next.
    pub fn take(&mut self, bytes: &[u8], most: Option<usize>) -> usize {
        let mut taken = 0;
        for chunk in bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                let after = self.after(character);
                if most.is_some_and(|most| self.begins_beyond(most, character, &after)) {
                    return taken;
                }
                *self = after;
                taken += character.len_utf8();
            }
            for _ in chunk.invalid() {
                let after = self.after(char::REPLACEMENT_CHARACTER);
                if most.is_some_and(|most| after.full >= most) {
                    return taken;
                }
                *self = after;
                taken += 1;
            }
        }
        taken
    }

    /// Whether a character would begin a row beyond the page, an empty one included.
    fn begins_beyond(&self, most: usize, character: char, after: &Self) -> bool {
        match character {
            '\n' => self.full >= most,
            _ => after.full >= most && after.column > 0,
        }
    }

    fn after(self, character: char) -> Self {
        let Self { column, full, .. } = self;
        let to = |column, escape| Self {
            column,
            full,
            escape,
        };
        match (self.escape, character) {
            (Escape::Begun, '[') => to(column, Escape::Sequence),
            (Escape::Sequence, 'H') => to(0, Escape::None),
            (Escape::Sequence, ' '..='?') => self,
            (Escape::Begun | Escape::Sequence, ' '..) => to(column, Escape::None),
            (_, '\x1b') => to(column, Escape::Begun),
            (_, '\n') => Self {
                column: 0,
                full: full + 1,
                escape: Escape::None,
            },
            (_, '\r') => to(0, Escape::None),
            (_, '\x08') => to(column.saturating_sub(1), Escape::None),
            (_, '\t') => to(((column / TAB + 1) * TAB).min(COLUMNS - 1), Escape::None),
            (_, character) => {
                let width = character.width().unwrap_or(0);
                match column + width > COLUMNS {
                    true => Self {
                        column: width,
                        full: full + 1,
                        escape: Escape::None,
                    },
                    false => to(column + width, Escape::None),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pages of a text, each of so many rows.
    fn pages(text: &str, most: usize) -> Vec<String> {
        let (mut pages, mut rest) = (Vec::new(), text.as_bytes());
        while !rest.is_empty() {
            let mut rows = Rows::default();
            let (page, more) = rest.split_at(rows.take(rest, Some(most)));
            assert!(!page.is_empty(), "a page takes something");
            pages.push(String::from_utf8_lossy(page).into_owned());
            rest = more;
        }
        pages
    }

    #[test]
    fn a_page_ends_where_another_row_would_begin() {
        assert_eq!(pages("a\nb\n", 2), ["a\nb\n"]);
        assert_eq!(pages("a\nb\nc\n", 2), ["a\nb\n", "c\n"]);
        assert_eq!(pages("a\n\n\n\nb", 2), ["a\n\n", "\n\n", "b"]);
        assert_eq!(pages("a\nb", 1), ["a\n", "b"]);
    }

    #[test]
    fn a_long_line_fills_as_many_rows_as_it_shows_in() {
        let row = "x".repeat(80);
        assert_eq!(pages(&format!("{row}\n{row}\n"), 2).len(), 1);
        assert_eq!(pages(&row.repeat(3), 2), [row.repeat(2), row.clone()]);
        let wide = "字".repeat(41);
        assert_eq!(pages(&wide, 1), ["字".repeat(40), "字".into()]);
        assert_eq!(
            pages(&format!("x{wide}"), 1)[0],
            format!("x{}", "字".repeat(39))
        );
        assert_eq!(pages(&format!("{}y", "\t".repeat(20)), 1).len(), 1);
        assert_eq!(pages(&format!("{row}\r{row}\x08z"), 1).len(), 1);
    }

    #[test]
    fn what_shows_nothing_fills_nothing() {
        let coloured = "\x1b[1;31mx\x1b[0m".repeat(80);
        assert_eq!(pages(&coloured, 1).len(), 1);
        let mut rows = Rows::default();
        rows.take(b"x\x1b[H\x1b[2J", None);
        assert!(rows.fresh());
        assert_eq!(rows.take(&[0xff; 100], Some(1)), 80);
    }
}
