//! Lines of bounded width, and numbers in sentences.

use alloc::format;
use alloc::string::String;

/// Columns of a terminal that a report fits.
pub const COLUMNS: usize = 80;

/// Text, built line by line.
#[derive(Debug, Default)]
pub struct Lines(String);

impl Lines {
    /// Adds a line that is known to fit.
    pub fn push(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Adds words, broken into lines that fit; all but the first are indented by two. A word longer than a line is broken. Blanks in
    /// a line stay as many as they are, so that the columns of a table's row do.
    pub fn wrap(&mut self, words: &str) {
        let (mut column, mut blanks) = (0, 0);
        for word in words.split_inclusive(' ') {
            let (word, next) = word.strip_suffix(' ').map_or((word, 0), |word| (word, 1));
            let length = word.chars().count();
            if length == 0 {
                blanks += next;
                continue;
            }
            if column > 0 && column + blanks + length > COLUMNS {
                self.0.push_str("\n  ");
                column = 2;
            } else {
                self.0.extend(core::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            blanks = next;
            for character in word.chars() {
                if column >= COLUMNS {
                    self.0.push_str("\n  ");
                    column = 2;
                }
                self.0.push(character);
                column += 1;
            }
        }
        self.0.push('\n');
    }

    /// All of it.
    #[must_use]
    pub fn finish(self) -> String {
        self.0
    }
}

/// A number of things: `1 chain`, `12 chains`.
#[must_use]
pub fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn a_number_and_its_noun_agree() {
        let chains = [0, 1, 12].map(|number| counted(number, "chain"));
        assert_eq!(chains, ["0 chains", "1 chain", "12 chains"]);
    }

    #[test]
    fn a_row_keeps_its_columns() {
        let mut lines = Lines::default();
        lines.wrap(&format!("  1   a  {:<60} cdefghij klm", "b"));
        let text = lines.finish();
        let row = format!("  1   a  {:<60} cdefghij\n  klm\n", "b");
        assert_eq!(text, row);
    }

    proptest! {
        #[test]
        fn wrapping_keeps_every_character_and_fits(words in prop::collection::vec("[a-z]{1,90}", 0..40)) {
            let mut lines = Lines::default();
            lines.wrap(&words.join(" "));
            let text = lines.finish();
            prop_assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
            let kept: Vec<char> = text.chars().filter(|character| character.is_ascii_lowercase()).collect();
            prop_assert_eq!(kept, words.concat().chars().collect::<Vec<char>>());
        }
    }
}
