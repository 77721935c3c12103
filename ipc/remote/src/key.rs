//! The keys of the remote shell, and the file that has them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::fmt::Write;

use ipc::proto::remote::Role;

/// Bytes of a key.
const BYTES: usize = 32;
/// Most keys in a file: a hello is tried with each, so it is as dear as there are keys.
pub const KEYS_MAX: usize = 2;

/// A secret that both ends have. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; BYTES]);

impl Key {
    /// From 32 random bytes.
    #[must_use]
    pub const fn new(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }
    /// Parses 64 hexadecimal digits.
    ///
    /// # Errors
    /// Says what is not allowed.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        if text.len() != 2 * BYTES {
            return Err(KeyError::Length(text.chars().count()));
        }
        let mut bytes = [0; BYTES];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            let (high, low) = digit(0).zip(digit(1)).ok_or(KeyError::Digit)?;
            *byte = u8::try_from(high * 16 + low).map_err(|_| KeyError::Digit)?;
        }
        Ok(Self(bytes))
    }
    /// The key as 64 hexadecimal digits, to be kept where only its owner can read.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
    pub(crate) const fn bytes(&self) -> &[u8; BYTES] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Why a text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// It has so many characters.
    Length(usize),
    /// It has a character that is no hexadecimal digit.
    Digit,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(f, "a key is 64 hexadecimal digits, not {length}"),
            Self::Digit => f.write_str("a key is 64 hexadecimal digits, and nothing else"),
        }
    }
}

impl core::error::Error for KeyError {}

/// Why a key file is refused, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// The file is not UTF-8.
    NotText,
    /// This line, from 1 on, is neither `control KEY` nor `observe KEY`, nor empty, nor a comment.
    Line(usize),
    /// This line's key is wrong.
    Key(usize, KeyError),
    /// This line has the key of an earlier one.
    Twice(usize),
    /// This line has a key too many.
    TooMany(usize),
    /// There is no key in it.
    Empty,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotText => f.write_str("the file is not text"),
            Self::Line(line) => write!(
                f,
                "line {line}: `control KEY`, `observe KEY` or `#` and a comment is allowed"
            ),
            Self::Key(line, error) => write!(f, "line {line}: {error}"),
            Self::Twice(line) => write!(f, "line {line}: an earlier line has this key"),
            Self::TooMany(line) => write!(f, "line {line}: at most {KEYS_MAX} keys are allowed"),
            Self::Empty => f.write_str("there is no key in it: `control KEY` or `observe KEY`"),
        }
    }
}

impl core::error::Error for LineError {}

/// The keys that a server takes, at least one, each with what it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRing(Vec<(Role, Key)>);

impl KeyRing {
    /// Parses a key file: lines `control KEY` and `observe KEY`; `#` begins a comment, empty lines count for nothing.
    ///
    /// # Errors
    /// Says which line is wrong and what is allowed: a file of which a part is not understood gives no keys.
    pub fn parse(file: &[u8]) -> Result<Self, LineError> {
        let text = core::str::from_utf8(file).map_err(|_| LineError::NotText)?;
        let mut keys: Vec<(Role, Key)> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default();
            let mut words = text.split_ascii_whitespace();
            let (word, digits) = match (words.next(), words.next(), words.next()) {
                (None, ..) => continue,
                (Some(word), Some(digits), None) => (word, digits),
                _ => return Err(LineError::Line(line)),
            };
            let role = match word {
                "control" => Role::Control,
                "observe" => Role::Observe,
                _ => return Err(LineError::Line(line)),
            };
            let key = Key::parse(digits).map_err(|error| LineError::Key(line, error))?;
            if keys.iter().any(|(_, other)| *other == key) {
                return Err(LineError::Twice(line));
            }
            if keys.len() == KEYS_MAX {
                return Err(LineError::TooMany(line));
            }
            keys.push((role, key));
        }
        if keys.is_empty() {
            return Err(LineError::Empty);
        }
        Ok(Self(keys))
    }
    /// The first key of a role.
    #[must_use]
    pub fn key(&self, role: Role) -> Option<&Key> {
        let mut keys = self.iter();
        keys.find(|(of, _)| *of == role).map(|(_, key)| key)
    }
    /// Each key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Role, &Key)> {
        self.0.iter().map(|(role, key)| (*role, key))
    }
}
