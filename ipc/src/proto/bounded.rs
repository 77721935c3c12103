//! Strings and bytes with a bound, so that the largest message of a protocol is known when it is compiled.
//!
//! They travel as postcard strings and byte arrays: a length, then the bytes, copied once.

use core::fmt;

use heapless::{String, Vec};
use postcard::experimental::max_size::MaxSize;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What was given does not fit its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too long")
    }
}

impl core::error::Error for TooLong {}

/// UTF-8 text of at most `N` bytes.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text<const N: usize>(String<N>);

impl<const N: usize> Text<N> {
    /// No text.
    #[must_use]
    pub const fn new() -> Self {
        Self(String::new())
    }
    /// The text, cut at the last character that still fits.
    #[must_use]
    pub fn cut(text: &str) -> Self {
        let mut kept = Self::new();
        for character in text.chars() {
            if kept.0.push(character).is_err() {
                break;
            }
        }
        kept
    }
    /// As a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const N: usize> TryFrom<&str> for Text<N> {
    type Error = TooLong;

    fn try_from(text: &str) -> Result<Self, TooLong> {
        String::try_from(text).map(Self).map_err(|_| TooLong)
    }
}

impl<const N: usize> core::ops::Deref for Text<N> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Writes what fits and fails on the rest, as `core::fmt` asks.
impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text).map_err(|_| fmt::Error)
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl<const N: usize> Serialize for Text<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Text<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor<const N: usize>;

impl<const N: usize> Visitor<'_> for TextVisitor<N> {
    type Value = Text<N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "text of at most {N} bytes")
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Text::try_from(text).map_err(|_| E::invalid_length(text.len(), &self))
    }
}

impl<const N: usize> MaxSize for Text<N> {
    const POSTCARD_MAX_SIZE: usize = N + length_bytes(N);
}

/// At most `N` bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes<const N: usize>(Vec<u8, N>);

impl<const N: usize> Bytes<N> {
    /// No bytes.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }
    /// Appends the bytes: all or none.
    ///
    /// # Errors
    /// They do not fit.
    pub fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.0.extend_from_slice(bytes).map_err(|_| TooLong)
    }
}

impl<const N: usize> TryFrom<&[u8]> for Bytes<N> {
    type Error = TooLong;

    fn try_from(bytes: &[u8]) -> Result<Self, TooLong> {
        Vec::from_slice(bytes).map(Self).map_err(|_| TooLong)
    }
}

impl<const N: usize> core::ops::Deref for Bytes<N> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<const N: usize> Serialize for Bytes<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Bytes<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(BytesVisitor)
    }
}

struct BytesVisitor<const N: usize>;

impl<const N: usize> Visitor<'_> for BytesVisitor<N> {
    type Value = Bytes<N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {N} bytes")
    }
    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Bytes::try_from(bytes).map_err(|_| E::invalid_length(bytes.len(), &self))
    }
}

impl<const N: usize> MaxSize for Bytes<N> {
    const POSTCARD_MAX_SIZE: usize = N + length_bytes(N);
}

/// Bytes that postcard needs for a length up to `bound`: seven bits in each.
const fn length_bytes(bound: usize) -> usize {
    let bits = usize::BITS - bound.leading_zeros();
    if bits == 0 {
        1
    } else {
        bits.div_ceil(7) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Write;

    #[test]
    fn the_largest_value_has_the_largest_size() {
        fn check<const N: usize>() {
            let text = Text::<N>::try_from("x".repeat(N).as_str()).unwrap();
            let mut out = [0; 4096];
            assert_eq!(
                postcard::to_slice(&text, &mut out).unwrap().len(),
                Text::<N>::POSTCARD_MAX_SIZE
            );
            let bytes = Bytes::<N>::try_from([0xff; N].as_slice()).unwrap();
            assert_eq!(
                postcard::to_slice(&bytes, &mut out).unwrap().len(),
                Bytes::<N>::POSTCARD_MAX_SIZE
            );
        }
        check::<0>();
        check::<1>();
        check::<127>();
        check::<128>();
        check::<2000>();
    }

    #[test]
    fn what_does_not_fit_is_refused_when_made_and_when_read() {
        assert_eq!(Text::<3>::try_from("four"), Err(TooLong));
        assert_eq!(Bytes::<3>::try_from(&[0; 4][..]), Err(TooLong));
        assert_eq!(
            postcard::from_bytes::<Text<3>>(b"\x03abc")
                .unwrap()
                .as_str(),
            "abc"
        );
        assert!(postcard::from_bytes::<Text<3>>(b"\x04abcd").is_err());
        assert!(postcard::from_bytes::<Text<3>>(b"\x02\xff\xff").is_err());
        assert!(postcard::from_bytes::<Bytes<3>>(b"\x04abcd").is_err());
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(Text::<4>::cut("aéöx").as_str(), "aé");
        let mut text = Text::<4>::new();
        assert!(write!(text, "{}", 12_345).is_err());
    }
}
