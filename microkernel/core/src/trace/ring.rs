//! One CPU's trace records. Its own CPU writes, in the kernel and so one at a time, and waits for nobody; any CPU copies out. The
//! newest record overwrites the oldest, and who reads is told how many it came too late for.
//!
//! # Ordering
//! Writer: sequence := 0; release fence; the other words, relaxed; sequence := n, release; written := n, release.
//! Reader: written, acquire; sequence, acquire; the other words; acquire fence; sequence again.
//!
//! A record that is seen to be written has all its words there. If a word of a later record was read, the fences order that one's
//! 0 before the second look at the sequence, which then differs: so two equal looks mean a whole record.

use ipc::abi::trace::TraceRecord;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// Words of a record behind its sequence.
const WORDS: usize = size_of::<TraceRecord>() / size_of::<u64>() - 1;

/// Where a record is.
#[derive(Debug, Default)]
pub struct Slot {
    sequence: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// The ring.
#[derive(Debug)]
pub struct Ring {
    slots: &'static [Slot],
    /// Records written since boot.
    written: AtomicU64,
}

/// What one [`Ring::read`] gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Where to go on.
    pub next: u64,
    /// Records copied.
    pub copied: usize,
    /// Records that were overwritten before they were read.
    pub lost: u64,
}

impl Ring {
    /// An empty ring of these slots.
    ///
    /// # Panics
    /// If their number is not a power of two: a mistake of the boot code.
    #[must_use]
    pub fn new(slots: &'static [Slot]) -> Self {
        assert!(
            slots.len().is_power_of_two(),
            "a record's slot is found by a mask"
        );
        Self {
            slots,
            written: AtomicU64::new(0),
        }
    }

    /// Records written since boot.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    fn slot(&self, sequence: u64) -> &Slot {
        &self.slots[(sequence as usize).wrapping_sub(1) & (self.slots.len() - 1)]
    }

    /// Writes the next record, whose number is given to it. Only for the ring's own CPU.
    pub fn write(&self, record: TraceRecord) {
        let sequence = self.written.load(Ordering::Relaxed) + 1;
        let slot = self.slot(sequence);
        slot.sequence.store(0, Ordering::Relaxed);
        // None of the words may be seen before it is seen that the old record is gone.
        fence(Ordering::Release);
        let TraceRecord {
            sequence: _,
            tsc,
            event,
            who,
            words: [first, second],
        } = record;
        for (to, from) in slot.words.iter().zip([tsc, event, who, first, second]) {
            to.store(from, Ordering::Relaxed);
        }
        slot.sequence.store(sequence, Ordering::Release);
        self.written.store(sequence, Ordering::Release);
    }

    /// The record with this number, if it is there, whole.
    fn copy(&self, sequence: u64) -> Option<TraceRecord> {
        let slot = self.slot(sequence);
        if slot.sequence.load(Ordering::Acquire) != sequence {
            return None;
        }
        let [tsc, event, who, first, second] =
            core::array::from_fn(|word| slot.words[word].load(Ordering::Relaxed));
        // No load of a word may be satisfied after the second look.
        fence(Ordering::Acquire);
        (slot.sequence.load(Ordering::Relaxed) == sequence).then_some(TraceRecord {
            sequence,
            tsc,
            event,
            who,
            words: [first, second],
        })
    }

    /// Copies the oldest records behind `position` that are still there. A position past the last record means the last. Bounded by
    /// the places in `out`: one that is overwritten meanwhile is lost, and takes none.
    pub fn read(&self, position: u64, out: &mut [TraceRecord]) -> Reading {
        let written = self.written();
        let position = position.min(written);
        let oldest = written.saturating_sub(self.slots.len() as u64);
        let first = position.max(oldest);
        let next = written.min(first + out.len() as u64);
        let whole = (first + 1..=next).filter_map(|sequence| self.copy(sequence));
        let mut copied = 0;
        for (to, record) in out.iter_mut().zip(whole) {
            *to = record;
            copied += 1;
        }
        Reading {
            next,
            copied,
            lost: next - position - copied as u64,
        }
    }
}

#[cfg(all(test, loom))]
mod races;

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ring(slots: usize) -> Ring {
        Ring::new(Box::leak((0..slots).map(|_| Slot::default()).collect()))
    }
    fn record(number: u64) -> TraceRecord {
        TraceRecord {
            sequence: 0,
            tsc: number * 10,
            event: number,
            who: number,
            words: [number, !number],
        }
    }

    #[test]
    fn a_position_past_the_end_is_the_end() {
        let ring = ring(4);
        let none = Reading {
            next: 0,
            copied: 0,
            lost: 0,
        };
        assert_eq!(ring.read(u64::MAX, &mut [record(0); 2]), none);
        (1..=6).for_each(|number| ring.write(record(number)));
        let end = Reading { next: 6, ..none };
        assert_eq!(ring.read(u64::MAX, &mut [record(0); 2]), end);
        assert_eq!(ring.read(6, &mut [record(0); 2]), end);
        // The first two of six are gone, and two are copied.
        let mut out = [record(0); 2];
        let reading = ring.read(0, &mut out);
        assert_eq!((reading.next, reading.copied, reading.lost), (4, 2, 2));
        assert_eq!(out.map(|record| record.sequence), [3, 4]);
    }

    proptest! {
        /// Whatever is written and read in turns, every record is read once, as it was written, or counted as lost.
        #[test]
        fn every_record_is_read_or_counted(turns in prop::collection::vec((0..20u64, 0..9usize), 0..60)) {
            let (ring, mut position) = (ring(8), 0);
            let (mut written, mut seen, mut lost) = (0, 0, 0);
            for (writes, reads) in turns {
                for _ in 0..writes {
                    written += 1;
                    ring.write(record(written));
                }
                let mut out = vec![record(0); reads];
                let reading = ring.read(position, &mut out);
                for got in &out[..reading.copied] {
                    prop_assert_eq!(*got, TraceRecord { sequence: got.sequence, ..record(got.sequence) });
                    prop_assert!(got.sequence > position && got.sequence <= reading.next);
                }
                prop_assert_eq!(reading.next - position, reading.copied as u64 + reading.lost);
                position = reading.next;
                seen += reading.copied as u64;
                lost += reading.lost;
            }
            prop_assert_eq!(seen + lost, position);
            prop_assert_eq!(ring.written(), written);
        }
    }
}
