//! Memory that is read and never written, a word at a time: what a read-only mapping is, on the reader's side.

use crate::{AtomicU64, Ordering};
use core::ops::Range;

/// Words that somebody else may be writing. They can be loaded and nothing else: a store to a read-only mapping is a fault. Loads are
/// relaxed, the only ones that are promised to work on read-only memory.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a>(&'a [AtomicU64]);

impl<'a> Words<'a> {
    /// How many.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.len()
    }
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }
    /// The value of a word now.
    ///
    /// # Panics
    /// If there are not so many words.
    #[must_use]
    pub fn load(self, index: usize) -> u64 {
        self.0[index].load(Ordering::Relaxed)
    }
    /// Some of them; `None` if not all are there.
    #[must_use]
    pub fn get(self, range: Range<usize>) -> Option<Self> {
        self.0.get(range).map(Self)
    }
    /// As many as there are of `size` words each, one after the other.
    pub fn chunks(self, size: usize) -> impl Iterator<Item = Self> + use<'a> {
        self.0.chunks_exact(size).map(Self)
    }
}

impl<'a> From<&'a [AtomicU64]> for Words<'a> {
    fn from(words: &'a [AtomicU64]) -> Self {
        Self(words)
    }
}
