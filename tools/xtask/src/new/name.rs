//! Names of new programs and servers: what a module, a package, a file and an entry of system.toml can all be called.

use std::fmt;

use ipc::abi::layout::NAME_MAX;

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A program.
    Program,
    /// A server, its protocol, and a program that calls it.
    Server,
}

impl Kind {
    /// Longest name. A server's client has a longer one, which must fit too.
    const fn longest(self) -> usize {
        match self {
            Self::Program => NAME_MAX,
            Self::Server => NAME_MAX - super::skeleton::CLIENT_PREFIX.len(),
        }
    }
}

/// A name that can be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

/// Why a name cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// It has other characters than it may, or too many.
    Malformed {
        /// What was given.
        text: String,
        /// Most characters.
        longest: usize,
    },
    /// Rust means something else by it.
    Reserved(String),
    /// Something in the tree has it.
    Taken {
        /// The name.
        text: String,
        /// What has it.
        by: String,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { text, longest } => write!(
                f,
                "{text:?} is not a name: 1 to {longest} of a-z 0-9 _, a letter first"
            ),
            Self::Reserved(text) => write!(f, "`{text}` is a word of Rust; take another name"),
            Self::Taken { text, by } => write!(f, "`{text}` is taken by {by}; take another name"),
        }
    }
}

impl std::error::Error for NameError {}

/// Words that cannot name a module or a package: keywords of the 2024 edition that fit a name, crates that come with the
/// compiler, and `main`.
const RESERVED: [&str; 57] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "main",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

impl Name {
    /// Checks a name against the rules and against those that are taken.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn parse(text: &str, kind: Kind, taken: &[(String, String)]) -> Result<Self, NameError> {
        let longest = kind.longest();
        let is_allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let begins = text.starts_with(|first: char| first.is_ascii_lowercase());
        if !begins || text.len() > longest || !text.bytes().all(is_allowed) {
            let text = text.to_owned();
            return Err(NameError::Malformed { text, longest });
        }
        if RESERVED.contains(&text) {
            return Err(NameError::Reserved(text.to_owned()));
        }
        if let Some((_, by)) = taken.iter().find(|(other, _)| other == text) {
            let (text, by) = (text.to_owned(), by.clone());
            return Err(NameError::Taken { text, by });
        }
        Ok(Self(text.to_owned()))
    }

    /// As a type is written: `word_count` is `WordCount`.
    pub fn as_type(&self) -> String {
        let words = self.0.split('_').filter(|word| !word.is_empty());
        words
            .flat_map(|word| {
                let (first, rest) = word.split_at(1);
                [first.to_ascii_uppercase(), rest.to_owned()]
            })
            .collect()
    }

    /// As it is.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str, kind: Kind) -> String {
        let taken = [("shares".to_owned(), "programs/src/shares.rs".to_owned())];
        Name::parse(text, kind, &taken).map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn names_are_checked_and_the_refusal_says_what_is_allowed() {
        for good in ["a", "pulse", "word_count", "x9", "sixteen_letters_"] {
            assert_eq!(refusal(good, Kind::Program), "");
        }
        let rule = "is not a name: 1 to 16 of a-z 0-9 _, a letter first";
        for bad in [
            "",
            "A",
            "9a",
            "_a",
            "a-b",
            "a b",
            "../a",
            "é",
            "a/b",
            "a\n",
            "seventeen_letters",
        ] {
            assert_eq!(refusal(bad, Kind::Program), format!("{bad:?} {rule}"));
        }
        assert_eq!(refusal("twelve_chars", Kind::Server), "");
        assert!(refusal("thirteen_char", Kind::Server).contains("1 to 12 of"));
        assert_eq!(
            refusal("match", Kind::Program),
            "`match` is a word of Rust; take another name"
        );
        assert_eq!(
            refusal("shares", Kind::Server),
            "`shares` is taken by programs/src/shares.rs; take another name"
        );
    }

    #[test]
    fn types_are_named_as_types_are() {
        let name = |text: &str| Name::parse(text, Kind::Program, &[]).unwrap().as_type();
        assert_eq!(name("tally"), "Tally");
        assert_eq!(name("word_count_"), "WordCount");
    }
}
