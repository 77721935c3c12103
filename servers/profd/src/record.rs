//! A sample record, read from the words of its slot.
//!
//! The kernel writes records, yet nothing in one is believed before it is checked: a slot may have been overwritten while
//! it was copied, and a report must survive that. Whatever does not hold together is a [`Corrupt`] record, which is
//! counted.

use ipc::abi::profile::{
    FIXED_WORDS, Header, KIND_SAMPLE, LAYOUT_VERSION, Marker, SLOT_WORDS, STACK_WORDS,
};

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corrupt {
    /// Fewer words than the fixed part.
    Short,
    /// Another layout version, or another kind than a sample.
    Foreign,
    /// Its counts exceed the slot, or the words given.
    Length,
    /// It has no interrupted instruction.
    NoLeaf,
    /// A tagged word is neither a canonical address nor a whole marker.
    Tagged,
}

/// A sample that was checked. The words stay where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Number of the record on its CPU, from 1.
    pub sequence: u64,
    /// CPU that took it.
    pub cpu: u8,
    /// See [`ipc::abi::profile::flags`].
    pub flags: u16,
    /// When it was taken, in TSC ticks.
    pub tsc: u64,
    /// Process that was executing; 0: none, the CPU was idle.
    pub pid: u32,
    /// RSP as interrupted.
    pub rsp: u64,
    /// RBP as interrupted.
    pub rbp: u64,
    /// Words from RSP upwards.
    pub stack: &'a [u64],
    tagged: &'a [u64],
}

/// Frames that belong to one process, innermost first; those of the kernel come first in the first part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Process whose user frames they are.
    pub pid: u32,
    /// Addresses.
    pub frames: &'a [u64],
}

impl<'a> Sample<'a> {
    /// Reads a record.
    ///
    /// # Errors
    /// The record does not hold together.
    pub fn decode(words: &'a [u64]) -> Result<Self, Corrupt> {
        let Some((&[sequence, header, tsc, who, _, rsp, rbp], rest)) =
            words.split_first_chunk::<FIXED_WORDS>()
        else {
            return Err(Corrupt::Short);
        };
        let header = Header::unpack(header);
        if header.version != LAYOUT_VERSION || header.kind != KIND_SAMPLE {
            return Err(Corrupt::Foreign);
        }
        if header.words() > SLOT_WORDS || usize::from(header.stack) > STACK_WORDS {
            return Err(Corrupt::Length);
        }
        let used = header.words() - FIXED_WORDS;
        let variable = rest.get(..used).ok_or(Corrupt::Length)?;
        let (stack, rest) = variable.split_at(header.stack.into());
        let (_, tagged) = rest.split_at(header.counters.into());
        if tagged.is_empty() || Marker::starts(tagged[0]) {
            return Err(Corrupt::NoLeaf);
        }
        check_tagged(tagged)?;
        Ok(Self {
            sequence,
            cpu: header.cpu,
            flags: header.flags,
            tsc,
            pid: who as u32,
            rsp,
            rbp,
            stack,
            tagged,
        })
    }

    /// Whether the header has one of [`ipc::abi::profile::flags`].
    #[must_use]
    pub const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// The interrupted instruction.
    #[must_use]
    pub const fn leaf(&self) -> u64 {
        self.tagged[0]
    }

    /// The parts: of the interrupted thread, of the client that it serves, and so on. The first begins with the leaf.
    pub fn parts(&self) -> impl Iterator<Item = Part<'a>> + use<'a> {
        let mut next = Some((self.pid, self.tagged));
        core::iter::from_fn(move || {
            let (pid, words) = next.take()?;
            let end = words.iter().position(|&word| Marker::starts(word));
            let (frames, rest) = words.split_at(end.unwrap_or(words.len()));
            if let Some((&marker, after)) = rest.split_first_chunk::<2>() {
                next = Some((Marker::unpack(marker).pid, after));
            }
            Some(Part { pid, frames })
        })
    }
}

/// Whether the address is one that this hardware can have: bits 63 to 47 are equal.
#[must_use]
pub const fn is_canonical(address: u64) -> bool {
    let top = (address as i64) >> 47;
    top == 0 || top == -1
}

/// Whether the address is in the kernel's half.
#[must_use]
pub const fn is_kernel(address: u64) -> bool {
    address >> 63 == 1
}

fn check_tagged(tagged: &[u64]) -> Result<(), Corrupt> {
    let mut words = tagged.iter();
    while let Some(&word) = words.next() {
        // A marker's second word is free of form.
        let whole = is_canonical(word) || (Marker::starts(word) && words.next().is_some());
        if !whole {
            return Err(Corrupt::Tagged);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn record(stack: u8, tagged: &[u64]) -> Vec<u64> {
        let header = Header {
            version: LAYOUT_VERSION,
            kind: KIND_SAMPLE,
            cpu: 3,
            stack,
            tagged: tagged.len() as u8,
            ..Header::default()
        };
        let mut words = alloc::vec![9, header.pack(), 1000, 12, 0, 0x7000, 0x7010];
        words.extend((0..u64::from(stack)).map(|word| word + 100));
        words.extend(tagged);
        words
    }

    #[test]
    fn a_record_keeps_its_parts() {
        let marker = Marker { pid: 7, tid: 8, image: 2 }.pack();
        let words = record(2, &[0x40_1000, 0x40_2000, marker[0], marker[1], 0x40_3000]);
        let sample = Sample::decode(&words).unwrap();
        assert_eq!((sample.sequence, sample.cpu, sample.pid, sample.leaf()), (9, 3, 12, 0x40_1000));
        assert_eq!(sample.stack, [100, 101]);
        let parts: Vec<_> = sample.parts().collect();
        assert_eq!(parts[0], Part { pid: 12, frames: &[0x40_1000, 0x40_2000] });
        assert_eq!(parts[1], Part { pid: 7, frames: &[0x40_3000] });
        assert_eq!(parts.len(), 2);
    }

    #[test]
    fn each_way_to_be_corrupt_is_told_apart() {
        let good = record(0, &[0x40_1000]);
        let with = |index: usize, value: u64| {
            let mut words = good.clone();
            words[index] = value;
            Sample::decode(&words).map(|_| ()).unwrap_err()
        };
        assert_eq!(Sample::decode(&good[..6]), Err(Corrupt::Short));
        assert_eq!(Sample::decode(&good[..7]), Err(Corrupt::Length));
        assert_eq!(with(1, 0), Corrupt::Foreign);
        assert_eq!(with(1, Header { tagged: 60, ..Header::unpack(good[1]) }.pack()), Corrupt::Length);
        assert_eq!(with(1, Header { tagged: 0, ..Header::unpack(good[1]) }.pack()), Corrupt::NoLeaf);
        assert_eq!(with(7, 0x1234_0000_0000_0000), Corrupt::Tagged);
        assert_eq!(with(7, Marker { pid: 1, tid: 1, image: 1 }.pack()[0]), Corrupt::NoLeaf);
    }

    proptest! {
        #[test]
        fn no_words_make_it_panic(mut words in prop::collection::vec(any::<u64>(), 0..80), forge in any::<bool>()) {
            if forge && words.len() > 1 {
                words[1] = words[1] & !0xffff | u64::from(LAYOUT_VERSION) | u64::from(KIND_SAMPLE) << 8;
            }
            if let Ok(sample) = Sample::decode(&words) {
                let frames: usize = sample.parts().map(|part| part.frames.len()).sum();
                prop_assert!(frames >= 1 && frames <= SLOT_WORDS);
            }
        }
    }
}
