//! The bytes of a folded profile: numbers are little-endian and of fixed size, texts and byte strings carry their length
//! before them, lists their count. `docs/report.md` has the layout; [`VERSION`] changes with it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// First bytes of a profile.
pub const MAGIC: [u8; 8] = *b"SondePrf";
/// Version of the layout.
pub const VERSION: u32 = 5;

/// Why bytes are not a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// They do not begin like one.
    NotAProfile,
    /// Another version of the layout.
    Version(u32),
    /// They end too early.
    Truncated,
    /// Bytes follow where the profile has ended.
    Trailing,
    /// A name is not UTF-8.
    NotText,
    /// A number stands for nothing: an enumeration's, or the index of a name or an image.
    BadNumber,
    /// The chains do not add up to the samples reported, the accounts add up to more, or the CPUs' samples to other than were read.
    BadSum,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAProfile => f.write_str("not a folded profile"),
            Self::Version(version) => write!(f, "layout version {version}, not {VERSION}"),
            Self::Truncated => f.write_str("the profile is cut short"),
            Self::Trailing => f.write_str("bytes follow the profile"),
            Self::NotText => f.write_str("a name in the profile is not UTF-8"),
            Self::BadNumber => f.write_str("a number in the profile stands for nothing"),
            Self::BadSum => f.write_str("chains, accounts or CPUs do not add up to the samples"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// Puts values behind each other.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// A byte.
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }
    /// Four bytes.
    pub fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }
    /// Eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }
    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }
    /// Bytes, their length before them.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.raw(bytes);
    }
    /// A number that may be none: `u32::MAX` then, which no index reaches.
    pub fn option(&mut self, value: Option<u32>) {
        self.u32(value.unwrap_or(u32::MAX));
    }
    /// A list, its count before it.
    pub fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.u32(items.len() as u32);
        for value in items {
            item(self, value);
        }
    }
    /// Everything written.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Takes values from the front.
#[derive(Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A reader over the bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (&taken, rest) = self.0.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }
    /// A byte.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(u8::from_le_bytes(self.array()?))
    }
    /// Four bytes.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    /// Eight bytes.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    /// This many bytes as they are.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn raw(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }
    /// Bytes, their length before them.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.u32()?;
        self.raw(length as usize)
    }
    /// Text.
    ///
    /// # Errors
    /// `Truncated`, `NotText`.
    pub fn text(&mut self) -> Result<String, DecodeError> {
        let text = core::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::NotText)?;
        Ok(text.into())
    }
    /// An index below `count`.
    ///
    /// # Errors
    /// `Truncated`, `BadNumber`.
    pub fn index(&mut self, count: usize) -> Result<u32, DecodeError> {
        let index = self.u32()?;
        if (index as usize) < count {
            Ok(index)
        } else {
            Err(DecodeError::BadNumber)
        }
    }
    /// An index below `count`, or none.
    ///
    /// # Errors
    /// `Truncated`, `BadNumber`.
    pub fn option(&mut self, count: usize) -> Result<Option<u32>, DecodeError> {
        match self.u32()? {
            u32::MAX => Ok(None),
            index if (index as usize) < count => Ok(Some(index)),
            _ => Err(DecodeError::BadNumber),
        }
    }
    /// A list. Nothing is reserved for a count that the bytes do not bear out.
    ///
    /// # Errors
    /// Those of its items.
    pub fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.u32()?;
        (0..count).map(|_| item(self)).collect()
    }
    /// Checks that nothing is left.
    ///
    /// # Errors
    /// `Trailing`.
    pub const fn finish(&self) -> Result<(), DecodeError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Trailing)
        }
    }
}
