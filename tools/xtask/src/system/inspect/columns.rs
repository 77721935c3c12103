//! A table that the shell prints: a line of headings, and rows of as many words. The last column has the rest of its line.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Result};

/// A table.
#[derive(Debug, PartialEq, Eq)]
pub struct Columns {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// Reads the table with these headings to the end of the text; what stands before it is left out.
    ///
    /// # Errors
    /// If there is none, or a row has too few words.
    pub fn read(text: &str, headings: &str) -> Result<Self> {
        let headings: Vec<String> = headings.split(' ').map(String::from).collect();
        let mut lines = text.lines();
        let found = lines.find(|line| line.split_whitespace().eq(&headings));
        let rows = found.and_then(|found| rows(found, lines, headings.len()));
        let rows = rows.with_context(|| format!("no table of {headings:?} in:\n{text}"))?;
        Ok(Self { headings, rows })
    }

    /// What a row has in a column.
    fn cell(&self, row: usize, heading: &str) -> Result<&str> {
        let column = self.headings.iter().position(|known| known == heading);
        let column = column.with_context(|| format!("no column {heading}"))?;
        Ok(&self.rows[row][column])
    }

    /// A column.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn column(&self, heading: &str) -> Result<Vec<&str>> {
        let rows = 0..self.rows.len();
        rows.map(|row| self.cell(row, heading)).collect()
    }

    /// What the first row that has `value` in a column has in another one.
    ///
    /// # Errors
    /// If there is no such row, or it has something else there.
    pub fn find<T: FromStr>(&self, heading: &str, value: &str, wanted: &str) -> Result<T>
    where
        T::Err: fmt::Display,
    {
        let row = self.column(heading)?.iter().position(|cell| *cell == value);
        let row = row.with_context(|| format!("no row with {value} in {heading}: {self:#?}"))?;
        let cell = self.cell(row, wanted)?;
        let parsed = cell.parse();
        parsed.map_err(|error| anyhow::anyhow!("{wanted} is {cell:?}: {error}"))
    }
}

/// The rows below a line of headings. A row that is too long for a line goes on in the next, in its last column: what begins there
/// neither begins nor ends where the first heading does.
fn rows<'a>(
    heading: &str,
    lines: impl Iterator<Item = &'a str>,
    count: usize,
) -> Option<Vec<Vec<String>>> {
    let (begin, end) = first_word(heading);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for line in lines {
        let word = first_word(line);
        if word.0 == begin || word.1 == end {
            rows.push(words(line, count)?);
        } else {
            let last = rows.last_mut()?.last_mut()?;
            last.push(' ');
            last.push_str(line.trim());
        }
    }
    Some(rows)
}

/// Where the first word of a line begins and ends.
fn first_word(line: &str) -> (usize, usize) {
    let begin = line.len() - line.trim_start().len();
    let word = line[begin..].split(' ').next().unwrap_or_default();
    (begin, begin + word.len())
}

/// So many words of a line, the last one with all that follows. A last one may be missing.
fn words(line: &str, count: usize) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while words.len() + 1 < count {
        let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        if word.is_empty() {
            return None;
        }
        words.push(word.to_owned());
        rest = behind.trim_start();
    }
    words.push(rest.to_owned());
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
before it
  A  B WHAT
  1 x  the rest of it
 22 y
";

    #[test]
    fn cells_are_found_by_their_headings() {
        let table = Columns::read(TEXT, "A B WHAT").unwrap();
        assert_eq!(table.column("A").unwrap(), ["1", "22"]);
        assert_eq!(table.column("WHAT").unwrap(), ["the rest of it", ""]);
        assert_eq!(table.find::<u64>("B", "y", "A").unwrap(), 22);
        assert!(table.find::<u64>("B", "z", "A").is_err());
        assert!(table.find::<u64>("A", "1", "B").is_err());
        assert!(table.column("C").is_err());
    }

    #[test]
    fn what_is_no_such_table_is_refused() {
        assert!(Columns::read(TEXT, "A WHAT").is_err());
        assert!(Columns::read("A B WHAT\n1\n", "A B WHAT").is_err());
        assert!(Columns::read("A B WHAT\n  x y z\n", "A B WHAT").is_err());
    }

    #[test]
    fn a_row_may_go_on_in_another_line() {
        let text = "    A B WHAT\n    1 x 42 bytes,\n  1 handle more\n   12 y it\n";
        let table = Columns::read(text, "A B WHAT").unwrap();
        assert_eq!(table.column("A").unwrap(), ["1", "12"]);
        assert_eq!(
            table.column("WHAT").unwrap(),
            ["42 bytes, 1 handle more", "it"]
        );
    }
}
