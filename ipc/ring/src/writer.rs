//! The kernel's side. Wait-free and without a lock: it runs in the tick and in the NMI.
//!
//! One context writes to a ring at a time: its own CPU, and there either the tick or the NMI, never one nested in the other.
//! Breaking that rule makes records that readers count as damaged or lost; it does not break memory safety.

use crate::geometry::{MAGIC, WORD_MAGIC, WORD_RECORDS, WORD_SLOT_WORDS};
use crate::{AtomicU64, Geometry, Ordering, fence};
use ipc::abi::profile::SLOT_WORDS;

/// Where a CPU puts its records.
#[derive(Debug)]
pub struct Writer<'a> {
    head: &'a AtomicU64,
    slots: &'a [[AtomicU64; SLOT_WORDS]],
    /// One less than there are slots, which is a power of two.
    mask: usize,
    /// Records written, as only the writer knows it: it stores the ring's head and never reads it back.
    written: AtomicU64,
}

impl<'a> Writer<'a> {
    /// Makes an empty ring of these words. `None` if they are fewer than the geometry needs.
    #[must_use]
    pub fn format(words: &'a [AtomicU64], geometry: Geometry) -> Option<Self> {
        let words = words.get(..geometry.words())?;
        for word in words {
            word.store(0, Ordering::Relaxed);
        }
        words[WORD_RECORDS].store(geometry.records() as u64, Ordering::Relaxed);
        words[WORD_SLOT_WORDS].store(SLOT_WORDS as u64, Ordering::Relaxed);
        words[WORD_MAGIC].store(MAGIC, Ordering::Release);
        Self::of(words, geometry, 0)
    }

    /// The writer of a ring into which so many records were written.
    pub(crate) fn of(words: &'a [AtomicU64], geometry: Geometry, written: u64) -> Option<Self> {
        let (header, slots) = words.split_at_checked(geometry.header_words())?;
        Some(Self {
            head: header.get(Geometry::HEAD)?,
            slots: slots.as_chunks().0.get(..geometry.records())?,
            mask: geometry.records() - 1,
            written: AtomicU64::new(written),
        })
    }

    /// Records written since the ring was made.
    #[must_use]
    #[inline]
    pub fn head(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Records the ring holds.
    #[must_use]
    pub const fn records(&self) -> usize {
        self.slots.len()
    }

    /// Opens the next record. From here until [`Slot::publish`] the oldest record is gone and the new one is not there.
    #[must_use]
    #[inline]
    pub fn begin(&self) -> Slot<'_> {
        let slot = self.resume(Slot::FIRST);
        slot.words[0].store(0, Ordering::Relaxed);
        // No payload store may be seen before the sequence is seen to be gone.
        fence(Ordering::Release);
        slot
    }

    /// The record that was opened and has so many words by now, for who did not get it handed over.
    #[must_use]
    #[inline]
    pub fn resume(&self, used: usize) -> Slot<'_> {
        let written = self.head();
        Slot {
            words: &self.slots[written as usize & self.mask],
            ring: self,
            used: used.clamp(Slot::FIRST, SLOT_WORDS),
        }
    }
}

/// A record being written. Dropped without [`Slot::publish`] it was never there.
#[derive(Debug)]
pub struct Slot<'a> {
    ring: &'a Writer<'a>,
    words: &'a [AtomicU64; SLOT_WORDS],
    used: usize,
}

impl Slot<'_> {
    /// The first word that [`Slot::push`] writes: after the sequence and the header.
    const FIRST: usize = 2;

    /// Appends a word. False if the slot is full; the word is then not in the record.
    #[must_use]
    #[inline]
    pub fn push(&mut self, word: u64) -> bool {
        let Some(place) = self.words.get(self.used) else {
            return false;
        };
        place.store(word, Ordering::Relaxed);
        self.used += 1;
        true
    }
    /// Appends some words. False if they do not fit; none of them is then in the record.
    #[inline]
    #[must_use]
    pub fn extend<const N: usize>(&mut self, more: [u64; N]) -> bool {
        let free = self.words.get(self.used..);
        let Some(places) = free.and_then(<[_]>::first_chunk::<N>) else {
            return false;
        };
        for (place, word) in places.iter().zip(more) {
            place.store(word, Ordering::Relaxed);
        }
        self.used += N;
        true
    }
    /// The next words, at most `most` of them, to be stored to from the first on. They are in the record once they are said to be
    /// filled.
    #[inline]
    #[must_use]
    pub fn free(&self, most: usize) -> &[AtomicU64] {
        let end = self.used.saturating_add(most).min(SLOT_WORDS);
        &self.words[self.used.min(end)..end]
    }
    /// So many more words were filled.
    #[inline]
    pub fn fill(&mut self, words: usize) {
        self.used = (self.used + words).min(SLOT_WORDS);
    }
    /// Words of the record so far, sequence and header included.
    #[must_use]
    #[inline]
    pub const fn used(&self) -> usize {
        self.used
    }
    /// Words still free.
    #[must_use]
    #[inline]
    pub const fn room(&self) -> usize {
        self.words.len() - self.used
    }
    /// Takes back what was appended since [`Slot::used`] was `used`.
    #[inline]
    pub fn rewind(&mut self, used: usize) {
        self.used = used.min(self.used).max(Self::FIRST);
    }
    /// Makes the record visible, under this header word.
    #[inline]
    pub fn publish(self, header: u64) {
        let sequence = self.ring.head() + 1;
        self.words[1].store(header, Ordering::Relaxed);
        self.words[0].store(sequence, Ordering::Release);
        self.ring.head.store(sequence, Ordering::Release);
        self.ring.written.store(sequence, Ordering::Relaxed);
    }
}
