//! What clap leaves to the host's tools: a mistake told in one line, with what is allowed.
#![forbid(unsafe_code)]

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// What clap says of a mistake and of what is allowed, without its hint at a help.
#[must_use]
pub fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let paragraph = text.split("\n\n").next().unwrap_or(&text);
    let lines: Vec<&str> = paragraph.lines().map(str::trim).collect();
    lines.join(" ")
}

/// What a number may be; it was another one, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside<T> {
    least: T,
    most: T,
}

impl<T: fmt::Display> fmt::Display for Outside<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number from {} to {}", self.least, self.most)
    }
}

impl<T: fmt::Debug + fmt::Display> std::error::Error for Outside<T> {}

/// Reads a number in a range. clap's own parser does not say what is allowed of a word that is no number.
pub fn number<T: Copy + FromStr + PartialOrd>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, Outside<T>> + Clone {
    move |word| {
        let number = word.parse().ok().filter(|number| range.contains(number));
        number.ok_or(Outside {
            least: *range.start(),
            most: *range.end(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    #[test]
    fn a_number_outside_and_no_number_say_what_is_allowed() {
        let parse = number(1..=64_u32);
        assert_eq!(parse("64"), Ok(64));
        for word in ["0", "65", "-1", "x", ""] {
            assert_eq!(
                parse(word).unwrap_err().to_string(),
                "a number from 1 to 64"
            );
        }
    }

    #[test]
    fn a_mistake_has_one_line() {
        let command = Command::new("x").arg(Arg::new("file").required(true));
        let error = command.try_get_matches_from(["x"]).unwrap_err();
        let says = "error: the following required arguments were not provided: <file>";
        assert_eq!(one_line(&error), says);
    }
}
