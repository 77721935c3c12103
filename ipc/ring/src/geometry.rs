//! The size of a ring and where things are in it.

use ipc::abi::profile::{RING_RECORDS, SLOT_WORDS};

/// "SONDRNG", and the layout version in the last byte.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"SONDRNG\x01");
/// Header words, by place.
pub(crate) const WORD_MAGIC: usize = 0;
pub(crate) const WORD_RECORDS: usize = 1;
pub(crate) const WORD_SLOT_WORDS: usize = 2;
/// Words that a header has at least.
const HEADER_MIN: usize = Geometry::HEAD + 1;

/// The size of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    header_words: usize,
    records: usize,
}

impl Geometry {
    /// The rings of the kernel: a header page, then [`RING_RECORDS`] slots of [`SLOT_WORDS`] words.
    pub const KERNEL: Self = match Self::new(512, RING_RECORDS) {
        Some(geometry) => geometry,
        None => panic!("the constants of the contract make no ring"),
    };

    /// The word that counts the records written since boot.
    pub const HEAD: usize = 8;

    /// A ring of another size. `None` unless `records` is a power of two and the header has room for its fields.
    #[must_use]
    pub const fn new(header_words: usize, records: usize) -> Option<Self> {
        if !records.is_power_of_two() || header_words < HEADER_MIN {
            return None;
        }
        Some(Self {
            header_words,
            records,
        })
    }
    /// Words before the first slot.
    #[must_use]
    pub const fn header_words(self) -> usize {
        self.header_words
    }
    /// Records the ring holds.
    #[must_use]
    pub const fn records(self) -> usize {
        self.records
    }
    /// Words of the whole ring.
    #[must_use]
    pub const fn words(self) -> usize {
        self.header_words + self.records * SLOT_WORDS
    }
    /// Bytes of the whole ring; whole pages for [`Geometry::KERNEL`].
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.words() * size_of::<u64>()
    }
    /// Whether the header of a ring of this layout and size has these words, by their places.
    #[must_use]
    pub fn begins_with(self, word: impl Fn(usize) -> u64) -> bool {
        word(WORD_MAGIC) == MAGIC
            && word(WORD_RECORDS) == self.records as u64
            && word(WORD_SLOT_WORDS) == SLOT_WORDS as u64
    }
    /// First word of the slot of record `sequence`, which counts from 1.
    #[must_use]
    #[inline]
    pub const fn slot(self, sequence: u64) -> usize {
        let index = sequence.wrapping_sub(1) as usize & (self.records - 1);
        self.header_words + index * SLOT_WORDS
    }
}

const _: () = assert!(Geometry::KERNEL.bytes().is_multiple_of(4096));
