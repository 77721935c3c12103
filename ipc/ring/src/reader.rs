//! `profd`'s side: copies records out and accounts for every one it does not get.

use crate::sample::{RecordError, Sample};
use crate::{Geometry, Ordering, Words, fence};
use ipc::abi::profile::{Header, SLOT_WORDS};

/// Why a ring, or one of its records, cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingError {
    /// The mapping is smaller than the ring: the caller's mistake.
    TooSmall,
    /// The header is not that of a ring of this layout and size.
    BadHeader,
    /// The head is behind the reader's position, which no writer does.
    HeadMovedBack {
        /// The head as read.
        head: u64,
        /// Records the reader had passed.
        position: u64,
    },
    /// A slot holds a record that cannot be there. Counted as damaged; the next record can be read.
    BadSequence {
        /// The record that was looked for.
        expected: u64,
        /// What its slot holds.
        found: u64,
    },
    /// A whole record makes no sense. Counted as damaged; the next record can be read.
    BadRecord {
        /// The record.
        sequence: u64,
        /// What is wrong with it.
        error: RecordError,
    },
}

impl core::fmt::Display for RingError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::TooSmall => f.write_str("the mapping is smaller than a sample ring"),
            Self::BadHeader => f.write_str("not a sample ring of this version and size"),
            Self::HeadMovedBack { head, position } => {
                write!(f, "ring head {head} is behind record {position}")
            }
            Self::BadSequence { expected, found } => {
                write!(
                    f,
                    "record {found} is in the slot where record {expected} belongs"
                )
            }
            Self::BadRecord { sequence, error } => write!(f, "record {sequence}: {error}"),
        }
    }
}

impl core::error::Error for RingError {}

/// What became of the records behind a reader's position since it was opened or last [`Reader::skip`]ped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Copied out whole.
    pub read: u64,
    /// Overwritten before they were read.
    pub lost: u64,
    /// Whole, but not a record.
    pub damaged: u64,
}

/// A reader of one CPU's ring.
#[derive(Debug)]
pub struct Reader<'a> {
    words: Words<'a>,
    geometry: Geometry,
    /// Records passed since boot.
    position: u64,
    counts: Counts,
}

impl<'a> Reader<'a> {
    /// A reader that stands at the head: it will see what is written from now on.
    ///
    /// # Errors
    /// [`RingError::TooSmall`] and [`RingError::BadHeader`].
    pub fn open(words: Words<'a>, geometry: Geometry) -> Result<Self, RingError> {
        let words = words.get(0..geometry.words()).ok_or(RingError::TooSmall)?;
        if !geometry.begins_with(|word| words.load(word)) {
            return Err(RingError::BadHeader);
        }
        let mut reader = Self {
            words,
            geometry,
            position: 0,
            counts: Counts::default(),
        };
        reader.skip();
        Ok(reader)
    }

    /// Passes over everything written so far, and begins to count anew: what a profile does before it starts.
    pub fn skip(&mut self) {
        self.position = self.head();
        self.counts = Counts::default();
    }

    /// Records behind this reader's position, since boot.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// What became of the records since the last [`Reader::skip`].
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The records written up to now, oldest first. Those that are already overwritten are counted at once. Bounded: at
    /// most as many records as the ring holds, however fast the writer is.
    ///
    /// # Errors
    /// [`RingError::HeadMovedBack`]; the position stays.
    pub fn drain(&mut self) -> Result<Drain<'_, 'a>, RingError> {
        let head = self.head();
        let behind = head
            .checked_sub(self.position)
            .ok_or(RingError::HeadMovedBack {
                head,
                position: self.position,
            })?;
        let overwritten = behind.saturating_sub(self.geometry.records() as u64);
        self.position += overwritten;
        self.counts.lost += overwritten;
        Ok(Drain { reader: self, head })
    }

    /// The head, after which every record up to it can be seen.
    fn head(&self) -> u64 {
        let head = self.words.load(Geometry::HEAD);
        fence(Ordering::Acquire);
        head
    }

    /// Copies record `sequence`, which is at or below the head, out of its slot.
    fn copy(&self, sequence: u64) -> Result<[u64; SLOT_WORDS], Miss> {
        let first = self.geometry.slot(sequence);
        let word = |index| self.words.load(first + index);
        let found = word(0);
        fence(Ordering::Acquire);
        if found != sequence {
            return Err(self.explain(sequence, found));
        }
        let mut words = [0; SLOT_WORDS];
        words[0] = sequence;
        words[1] = word(1);
        let used = Header::unpack(words[1]).words().min(SLOT_WORDS);
        for (index, to) in words.iter_mut().enumerate().take(used).skip(2) {
            *to = word(index);
        }
        // No payload load may be satisfied after the second look.
        fence(Ordering::Acquire);
        match word(0) {
            again if again == sequence => Ok(words),
            again => Err(self.explain(sequence, again)),
        }
    }

    /// What it means that the slot of record `sequence` shows `found`: 0 while a later record is written over it, or that
    /// record's sequence, a whole number of rounds later.
    const fn explain(&self, sequence: u64, found: u64) -> Miss {
        let rounds = found.wrapping_sub(sequence) & (self.geometry.records() as u64 - 1);
        if found == 0 || (found > sequence && rounds == 0) {
            Miss::Overwritten
        } else {
            Miss::Impossible(found)
        }
    }
}

/// Why a slot did not give its record.
enum Miss {
    /// A later one is, or is being, written over it.
    Overwritten,
    /// It holds what cannot be there.
    Impossible(u64),
}

/// The records of one [`Reader::drain`]. What it is dropped before reaching stays in the ring.
#[derive(Debug)]
pub struct Drain<'r, 'a> {
    reader: &'r mut Reader<'a>,
    head: u64,
}

impl Drain<'_, '_> {
    /// The next record's words, before anyone asks what they mean.
    pub(crate) fn next_words(&mut self) -> Option<Result<[u64; SLOT_WORDS], RingError>> {
        while self.reader.position < self.head {
            let sequence = self.reader.position + 1;
            let copied = self.reader.copy(sequence);
            self.reader.position = sequence;
            match copied {
                Ok(words) => return Some(Ok(words)),
                Err(Miss::Overwritten) => self.reader.counts.lost += 1,
                Err(Miss::Impossible(found)) => {
                    self.reader.counts.damaged += 1;
                    return Some(Err(RingError::BadSequence {
                        expected: sequence,
                        found,
                    }));
                }
            }
        }
        None
    }
}

impl Iterator for Drain<'_, '_> {
    type Item = Result<Sample, RingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let words = match self.next_words()? {
            Ok(words) => words,
            Err(error) => return Some(Err(error)),
        };
        let counts = &mut self.reader.counts;
        Some(match Sample::parse(words) {
            Ok(sample) => {
                counts.read += 1;
                Ok(sample)
            }
            Err(error) => {
                counts.damaged += 1;
                Err(RingError::BadRecord {
                    sequence: words[0],
                    error,
                })
            }
        })
    }
}
