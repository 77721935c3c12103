//! Text that is too long for a line.

use alloc::string::String;

use profd::text::{COLUMNS, Lines};
use unicode_width::UnicodeWidthStr;

/// A line with its end. What does not fit a row goes on behind two blanks, as notes of a report do.
#[must_use]
pub fn wrapped(line: &str) -> String {
    let mut lines = Lines::default();
    if line.width() <= COLUMNS {
        lines.push(line);
    } else {
        lines.wrap(line);
    }
    lines.finish()
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, wrapped};

    #[test]
    fn a_line_that_fits_is_left_alone() {
        let line = "two  blanks ".to_owned() + &"x".repeat(COLUMNS - 12);
        assert_eq!(wrapped(&line), line + "\n");
        let word = "x".repeat(COLUMNS - 10);
        assert_eq!(
            wrapped(&format!("two blanks {word}")),
            format!("two blanks\n  {word}\n")
        );
    }
}
