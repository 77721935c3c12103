//! The words of the boot command line.

use core::fmt::{Display, Formatter, Result};

/// A word that the kernel knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The boot's details are shown on the serial line as well.
    Verbose,
    /// Events are traced from the start.
    Trace,
    /// Fail on purpose, once the kernel is there.
    Fail(Trouble),
}

/// A failure on request, so that tests see what one looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Panic.
    Panic,
    /// Touch an address that is not mapped.
    Fault,
    /// Use more stack than there is.
    Stack,
}

const WORDS: [(&str, Word); 5] = [
    ("verbose", Word::Verbose),
    ("trace", Word::Trace),
    ("panic=test", Word::Fail(Trouble::Panic)),
    ("panic=fault", Word::Fail(Trouble::Fault)),
    ("panic=stack", Word::Fail(Trouble::Stack)),
];

/// What programs read there: whole words, and the beginnings of words that go on with a value.
const OF_PROGRAMS: [&str; 4] = ["ip=", "gw=", "udpshell=", "udpshell-open"];

/// Whether a program will look at the word.
fn is_for_program(text: &str) -> bool {
    let names = |name: &str| match name.ends_with('=') {
        true => text.starts_with(name),
        false => text == name,
    };
    OF_PROGRAMS.iter().any(|name| names(name))
}

fn known(text: &str) -> Option<Word> {
    let entry = WORDS.iter().find(|(name, _)| *name == text);
    entry.map(|&(_, word)| word)
}

/// The words of `line` that the kernel knows.
pub fn words(line: &str) -> impl Iterator<Item = Word> {
    line.split(' ').filter_map(known)
}

/// The words that the kernel does not know, for a message that also names those it does; `None` if there are none.
#[must_use]
pub fn unknown(line: &str) -> Option<Unknown<'_>> {
    let unknown = Unknown(line);
    unknown.words().next().is_some().then_some(unknown)
}

/// See [`unknown`].
#[derive(Clone, Copy, Debug)]
pub struct Unknown<'a>(&'a str);

impl<'a> Unknown<'a> {
    fn words(self) -> impl Iterator<Item = &'a str> {
        let words = self.0.split(' ');
        words.filter(|word| !word.is_empty() && known(word).is_none() && !is_for_program(word))
    }
}

impl Display for Unknown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("not known on the command line:")?;
        for word in self.words() {
            write!(f, " {word}")?;
        }
        f.write_str(" (known:")?;
        for name in WORDS.iter().map(|(name, _)| name).chain(&OF_PROGRAMS) {
            write!(f, " {name}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_and_none_in_another() {
        for (name, word) in WORDS {
            assert_eq!(words(name).collect::<Vec<_>>(), [word]);
            let among = format!("  x{name} {name}x  {name} ");
            assert_eq!(words(&among).collect::<Vec<_>>(), [word]);
        }
        assert_eq!(words("panic= panic=tes verbosely").count(), 0);
    }

    #[test]
    fn unknown_words_are_named_with_the_known_ones() {
        let for_programs = "ip=10.0.2.15/24 gw=x udpshell=99999 udpshell-open";
        for silent in ["", "  ", "verbose", " panic=test  verbose", for_programs] {
            assert!(unknown(silent).is_none(), "{silent:?}");
        }
        assert_eq!(
            unknown("panic=x verbose  Verbose ip udpshell-opened")
                .unwrap()
                .to_string(),
            "not known on the command line: panic=x Verbose ip udpshell-opened (known: verbose trace panic=test panic=fault \
             panic=stack ip= gw= udpshell= udpshell-open)"
        );
    }
}
