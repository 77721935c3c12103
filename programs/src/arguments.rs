//! The command line of a small program: words, and for some programs `-t MS` anywhere among them.

use core::fmt;
use core::ops::RangeInclusive;

use heapless::Vec;

/// Most words that a program takes.
pub const WORDS_MAX: usize = 16;
/// What `-t` may say, in milliseconds: up to a day.
pub const RUN_MS: RangeInclusive<u64> = 1..=86_400_000;

/// The words of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments<'a>(Vec<&'a str, WORDS_MAX>);

/// What is wrong with a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentError<'a> {
    /// An argument is not there.
    Missing {
        /// What it is called.
        name: &'static str,
        /// What is allowed.
        allowed: Allowed,
    },
    /// An argument is not what it may be.
    Wrong {
        /// What it is called.
        name: &'static str,
        /// What it is.
        word: &'a str,
        /// What is allowed.
        allowed: Allowed,
    },
    /// There are more than the program takes.
    TooMany {
        /// How many it takes.
        most: usize,
    },
}

/// What an argument may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// A number, first and last included.
    Number(u64, u64),
    /// One of these words.
    OneOf(&'static [&'static str]),
}

impl From<&RangeInclusive<u64>> for Allowed {
    fn from(range: &RangeInclusive<u64>) -> Self {
        Self::Number(*range.start(), *range.end())
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(first, last) => write!(f, "a number from {first} to {last}"),
            Self::OneOf(words) => {
                f.write_str("one of")?;
                words.iter().try_for_each(|word| write!(f, " {word}"))
            }
        }
    }
}

/// Longest part of a wrong word that is shown, in characters.
const SHOWN: usize = 24;

impl fmt::Display for ArgumentError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name, allowed } => write!(f, "{name} is missing; it is {allowed}"),
            Self::Wrong {
                name,
                word,
                allowed,
            } => {
                let shown = word
                    .char_indices()
                    .nth(SHOWN)
                    .map_or(*word, |(end, _)| &word[..end]);
                write!(f, "{name} {}: it is {allowed}", shown.escape_debug())
            }
            Self::TooMany { most: 0 } => f.write_str("too many arguments; there are none"),
            Self::TooMany { most: 1 } => f.write_str("too many arguments; there is one"),
            Self::TooMany { most } => write!(f, "too many arguments; at most {most}"),
        }
    }
}

impl<'a> Arguments<'a> {
    /// A command line of at most `most` words.
    ///
    /// # Errors
    /// Too many words.
    pub fn parse(
        words: impl IntoIterator<Item = &'a str>,
        most: usize,
    ) -> Result<Self, ArgumentError<'a>> {
        let mut parsed = Self(Vec::new());
        words
            .into_iter()
            .try_for_each(|word| parsed.push(word, most))?;
        Ok(parsed)
    }

    /// A command line of at most `most` words, and the `MS` of `-t MS`: run so long; `None`: forever.
    ///
    /// # Errors
    /// Too many words, or `-t` without a time.
    pub fn parse_timed(
        words: impl IntoIterator<Item = &'a str>,
        most: usize,
    ) -> Result<(Self, Option<u64>), ArgumentError<'a>> {
        let mut parsed = Self(Vec::new());
        let mut run_ms = None;
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            if word == "-t" {
                run_ms = Some(number("MS of -t", words.next(), &RUN_MS)?);
            } else {
                parsed.push(word, most)?;
            }
        }
        Ok((parsed, run_ms))
    }

    fn push(&mut self, word: &'a str, most: usize) -> Result<(), ArgumentError<'a>> {
        if self.0.len() == most {
            return Err(ArgumentError::TooMany { most });
        }
        self.0
            .push(word)
            .map_err(|_| ArgumentError::TooMany { most })
    }

    /// How many words there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The number in the place `index`.
    ///
    /// # Errors
    /// It is not there, or not in the range.
    pub fn number(
        &self,
        index: usize,
        name: &'static str,
        range: &RangeInclusive<u64>,
    ) -> Result<u64, ArgumentError<'a>> {
        number(name, self.0.get(index).copied(), range)
    }

    /// The word in the place `index`: its place among those allowed.
    ///
    /// # Errors
    /// It is not there, or not one of them.
    pub fn choice(
        &self,
        index: usize,
        name: &'static str,
        words: &'static [&'static str],
    ) -> Result<usize, ArgumentError<'a>> {
        let allowed = Allowed::OneOf(words);
        let word = *self
            .0
            .get(index)
            .ok_or(ArgumentError::Missing { name, allowed })?;
        words
            .iter()
            .position(|other| *other == word)
            .ok_or(ArgumentError::Wrong {
                name,
                word,
                allowed,
            })
    }
}

fn number<'a>(
    name: &'static str,
    word: Option<&'a str>,
    range: &RangeInclusive<u64>,
) -> Result<u64, ArgumentError<'a>> {
    let allowed = Allowed::from(range);
    let word = word.ok_or(ArgumentError::Missing { name, allowed })?;
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse()
        .ok()
        .filter(|number| digits && range.contains(number))
        .ok_or(ArgumentError::Wrong {
            name,
            word,
            allowed,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse<'a>(line: &'a str, most: usize) -> Result<Arguments<'a>, ArgumentError<'a>> {
        Arguments::parse(line.split_whitespace(), most)
    }

    fn refusal<T: fmt::Debug>(result: Result<T, ArgumentError<'_>>) -> String {
        result.unwrap_err().to_string()
    }

    fn timed<'a>(
        line: &'a str,
        most: usize,
    ) -> Result<(Arguments<'a>, Option<u64>), ArgumentError<'a>> {
        Arguments::parse_timed(line.split_whitespace(), most)
    }

    #[test]
    fn words_and_a_time() {
        let (parsed, run_ms) = timed("60 -t 500 30", 2).unwrap();
        assert_eq!((parsed.count(), run_ms), (2, Some(500)));
        assert_eq!(parsed.number(1, "share", &(1..=30)), Ok(30));
        assert_eq!(timed("", 0).unwrap().1, None);
    }

    #[test]
    fn a_program_without_a_time_takes_none() {
        assert_eq!(
            refusal(parse("5 -t 1", 1)),
            "too many arguments; there is one"
        );
        let parsed = parse("-t 5", 2).unwrap();
        assert!(parsed.number(0, "MS", &(1..=9)).is_err());
    }

    #[test]
    fn a_wrong_argument_gets_its_name_and_what_is_allowed() {
        let parsed = parse("0 x +5", 3).unwrap();
        let range = 1..=30;
        assert_eq!(
            refusal(parsed.number(0, "share", &range)),
            "share 0: it is a number from 1 to 30"
        );
        assert!(parsed.number(1, "share", &range).is_err());
        assert!(parsed.number(2, "share", &range).is_err());
        assert_eq!(
            refusal(parsed.number(3, "MS", &range)),
            "MS is missing; it is a number from 1 to 30"
        );
        assert_eq!(
            refusal(parsed.choice(1, "KIND", &["null", "wild"])),
            "KIND x: it is one of null wild"
        );
        assert_eq!(parsed.choice(1, "KIND", &["y", "x"]), Ok(1));
        assert_eq!(refusal(parse("1 2", 1)), "too many arguments; there is one");
        assert_eq!(refusal(parse("1", 0)), "too many arguments; there are none");
        assert_eq!(
            refusal(timed("-t", 1)),
            "MS of -t is missing; it is a number from 1 to 86400000"
        );
        assert!(timed("-t 0", 1).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn a_refusal_is_one_short_line(words in prop::collection::vec("[-t0-9\\PC\\n]{0,40}", 0..20)) {
            let parsed = Arguments::parse_timed(words.iter().map(String::as_str), 4);
            let numbered = parsed.and_then(|(parsed, _)| parsed.number(0, "MS", &(1..=9)));
            if let Err(error) = numbered {
                let line = error.to_string();
                prop_assert!(!line.contains('\n') && line.len() < 400, "{line}");
            }
        }
    }
}
