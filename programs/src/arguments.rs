//! The command line of a small program: words, and for some programs `-t MS` anywhere among them.

use core::fmt::{self, Write as _};
use core::ops::RangeInclusive;

use heapless::Vec;

/// Most words that a program takes.
pub const WORDS_MAX: usize = 16;
/// What `-t` may say, in milliseconds: up to a day.
pub const RUN_MS: RangeInclusive<u64> = 1..=86_400_000;

/// The option that says how long a program runs.
const TIME: &str = "-t";

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
    /// An option is given again.
    Twice {
        /// The option.
        option: &'static str,
    },
    /// There are more than the program takes.
    TooMany {
        /// The first one.
        word: &'a str,
        /// How the command line is written.
        usage: &'static str,
    },
}

/// What an argument may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// A number, first and last included.
    Number(u64, u64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// An IPv4 address.
    Address,
}

impl From<&RangeInclusive<u64>> for Allowed {
    fn from(range: &RangeInclusive<u64>) -> Self {
        Self::Number(*range.start(), *range.end())
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address => f.write_str("an IPv4 address"),
            Self::Number(first, last) => write!(f, "{first} to {last}"),
            Self::OneOf(words) => {
                for (index, word) in words.iter().enumerate() {
                    let before = if index == 0 { "" } else { "|" };
                    write!(f, "{before}{word}")?;
                }
                Ok(())
            }
        }
    }
}

/// A wrong word as the shell would show it. It is cut so that the longest list of what is allowed fits the row behind it; what is
/// not ASCII, of which nobody here knows how wide it is, is a question mark.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 12;
        f.write_char('`')?;
        for character in self.0.chars().take(SHOWN) {
            let is_shown = character == ' ' || character.is_ascii_graphic();
            f.write_char(if is_shown { character } else { '?' })?;
        }
        let is_cut = self.0.chars().nth(SHOWN).is_some();
        f.write_str(if is_cut { "..`" } else { "`" })
    }
}

impl fmt::Display for ArgumentError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name, allowed } => write!(f, "{name} is missing: {allowed}"),
            Self::Wrong {
                name,
                word,
                allowed,
            } => write!(f, "{name} {}: {allowed}", Quoted(word)),
            Self::Twice { option } => write!(f, "`{option}` is given twice: once is enough"),
            Self::TooMany { word, usage } => {
                write!(f, "{} is too much; usage: {usage}", Quoted(word))
            }
        }
    }
}

impl<'a> Arguments<'a> {
    /// A command line of at most `most` words, which is written as `usage` says.
    ///
    /// # Errors
    /// Too many words.
    pub fn parse(
        words: impl IntoIterator<Item = &'a str>,
        most: usize,
        usage: &'static str,
    ) -> Result<Self, ArgumentError<'a>> {
        let mut parsed = Self(Vec::new());
        words
            .into_iter()
            .try_for_each(|word| parsed.push(word, most, usage))?;
        Ok(parsed)
    }

    /// The same with the `MS` of `-t MS`: run so long; `None`: forever.
    ///
    /// # Errors
    /// Too many words, or `-t` without a time, or twice.
    pub fn parse_timed(
        words: impl IntoIterator<Item = &'a str>,
        most: usize,
        usage: &'static str,
    ) -> Result<(Self, Option<u64>), ArgumentError<'a>> {
        let mut parsed = Self(Vec::new());
        let mut run_ms = None;
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            if word == TIME {
                let ms = number("MS of -t", words.next(), &RUN_MS)?;
                if run_ms.replace(ms).is_some() {
                    return Err(ArgumentError::Twice { option: TIME });
                }
            } else {
                parsed.push(word, most, usage)?;
            }
        }
        Ok((parsed, run_ms))
    }

    fn push(
        &mut self,
        word: &'a str,
        most: usize,
        usage: &'static str,
    ) -> Result<(), ArgumentError<'a>> {
        let too_many = ArgumentError::TooMany { word, usage };
        if self.0.len() == most {
            return Err(too_many);
        }
        self.0.push(word).map_err(|_| too_many)
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

    /// The number in the place `index`, if there is any word.
    ///
    /// # Errors
    /// It is not in the range.
    pub fn number_or(
        &self,
        default: u64,
        index: usize,
        name: &'static str,
        range: &RangeInclusive<u64>,
    ) -> Result<u64, ArgumentError<'a>> {
        match self.0.get(index) {
            None => Ok(default),
            Some(_) => self.number(index, name, range),
        }
    }

    /// The numbers that the words are, one at least.
    ///
    /// # Errors
    /// There is none, or one that is not in the range.
    pub fn numbers(
        &self,
        name: &'static str,
        range: &RangeInclusive<u64>,
    ) -> Result<Vec<u64, WORDS_MAX>, ArgumentError<'a>> {
        let count = self.0.len().max(1);
        // As many as there are words, which fit.
        (0..count)
            .map(|index| self.number(index, name, range))
            .collect()
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

    const USAGE: &str = "test WORD...";

    fn parse<'a>(line: &'a str, most: usize) -> Result<Arguments<'a>, ArgumentError<'a>> {
        Arguments::parse(line.split_whitespace(), most, USAGE)
    }

    fn refusal<T: fmt::Debug>(result: Result<T, ArgumentError<'_>>) -> String {
        result.unwrap_err().to_string()
    }

    fn timed<'a>(
        line: &'a str,
        most: usize,
    ) -> Result<(Arguments<'a>, Option<u64>), ArgumentError<'a>> {
        Arguments::parse_timed(line.split_whitespace(), most, USAGE)
    }

    #[test]
    fn words_and_a_time() {
        let (parsed, run_ms) = timed("60 -t 500 30", 2).unwrap();
        assert_eq!(run_ms, Some(500));
        assert_eq!(parsed.number(1, "share", &(1..=30)), Ok(30));
        assert_eq!(parsed.numbers("share", &(1..=60)).unwrap(), [60, 30]);
        assert_eq!(timed("", 0).unwrap().1, None);
    }

    #[test]
    fn a_program_without_a_time_takes_none() {
        assert_eq!(
            refusal(parse("5 -t 1", 1)),
            "`-t` is too much; usage: test WORD..."
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
            "share `0`: 1 to 30"
        );
        assert!(parsed.number(1, "share", &range).is_err());
        assert_eq!(parsed.number_or(7, 3, "share", &range), Ok(7));
        assert!(parsed.number_or(7, 1, "share", &range).is_err());
        assert!(parsed.number(2, "share", &range).is_err());
        assert_eq!(
            refusal(parsed.number(3, "MS", &range)),
            "MS is missing: 1 to 30"
        );
        assert_eq!(
            refusal(parsed.choice(1, "KIND", &["null", "wild"])),
            "KIND `x`: null|wild"
        );
        assert_eq!(parsed.choice(1, "KIND", &["y", "x"]), Ok(1));
        assert_eq!(
            refusal(parse("1 22", 1)),
            "`22` is too much; usage: test WORD..."
        );
        assert!(parse("1", 0).is_err());
        assert_eq!(
            refusal(timed("-t", 1)),
            "MS of -t is missing: 1 to 86400000"
        );
        assert!(timed("-t 0", 1).is_err());
        assert_eq!(
            refusal(timed("-t 5 -t 5", 1)),
            "`-t` is given twice: once is enough"
        );
    }

    #[test]
    fn a_wrong_word_is_cut_where_the_row_would_end() {
        let refused = |word: &str| refusal(parse(word, 1).unwrap().number(0, "MS", &(1..=9)));
        assert_eq!(refused("123456789012"), "MS `123456789012`: 1 to 9");
        assert_eq!(refused("1234567890123"), "MS `123456789012..`: 1 to 9");
        assert_eq!(refused("ü\u{7}x"), "MS `??x`: 1 to 9");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn a_refusal_is_one_short_line(words in prop::collection::vec("[-t0-9\\PC\\n]{0,40}", 0..20)) {
            let parsed = Arguments::parse_timed(words.iter().map(String::as_str), 4, USAGE);
            let numbered = parsed.and_then(|(parsed, _)| parsed.number(0, "MS", &(1..=9)));
            if let Err(error) = numbered {
                let line = error.to_string();
                prop_assert!(!line.contains('\n') && line.len() <= 60, "{line}");
            }
        }
    }
}
