//! Messages that fit a screen.

/// Columns of a terminal that a message fits.
pub const COLUMNS: usize = 80;

/// A message whose lines fit: what does not goes on behind two blanks more than the line begins with. A word is never broken,
/// because it may be a path or part of a command, which are copied.
#[must_use]
pub fn wrapped(message: &str) -> String {
    let lines: Vec<String> = message.lines().map(wrapped_line).collect();
    lines.join("\n")
}

fn wrapped_line(line: &str) -> String {
    if line.chars().count() <= COLUMNS {
        return line.to_owned();
    }
    let text = line.trim_start();
    let indent = line.chars().count() - text.chars().count();
    let mut wrapped = " ".repeat(indent);
    let mut column = indent;
    for (index, word) in text.split_whitespace().enumerate() {
        let width = word.chars().count();
        if index > 0 && column + 1 + width > COLUMNS {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent + 2));
            column = indent + 2;
        } else if index > 0 {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += width;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_fits_is_left_alone() {
        let message = format!("two  blanks {}\n  {}", "x".repeat(68), "y".repeat(78));
        assert_eq!(wrapped(&message), message);
    }

    #[test]
    fn a_longer_one_goes_on_behind_two_blanks_and_no_word_is_broken() {
        let (half, path) = ("x".repeat(50), "y".repeat(90));
        assert_eq!(
            wrapped(&format!("error: {half} {half} z {path} end")),
            format!("error: {half}\n  {half} z\n  {path}\n  end")
        );
        assert_eq!(
            wrapped(&format!("first\n  {half} {half}")),
            format!("first\n  {half}\n    {half}")
        );
    }
}
