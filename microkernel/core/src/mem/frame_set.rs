//! Which frames are RAM, a bit each: asked in constant time, wherever physical memory is reached.

use super::entry::Entry;
use crate::base::addr::{Frame, PhysAddr};
use crate::boot::memory::RangeSet;

/// Bits in a word.
const BITS: usize = u64::BITS as usize;

/// A set of frames.
#[derive(Clone, Copy, Debug)]
pub struct FrameSet {
    words: &'static [u64],
    /// Address of the largest range in it, and [`Entry::TO_USER`]: nearly every frame that is asked about lies here.
    start: u64,
    count: u64,
}

impl FrameSet {
    /// Words that a set needs for frames below this address.
    #[must_use]
    pub const fn words(highest: u64) -> usize {
        (highest.div_ceil(4096) as usize).div_ceil(BITS)
    }

    /// The frames that lie whole in these ranges, in words that are all 0. Those beyond the last word are left out.
    #[must_use]
    pub fn new(words: &'static mut [u64], ranges: &RangeSet) -> Self {
        for range in ranges.ranges() {
            let inner = range.inner_pages();
            let first = (inner.start / 4096) as usize;
            let end = (inner.end / 4096) as usize;
            for (index, word) in words.iter_mut().enumerate().skip(first / BITS) {
                let at = index * BITS;
                if at >= end {
                    break;
                }
                // Of this word, the bits from the first frame on, and those below the end.
                let from = u64::MAX << first.saturating_sub(at);
                let below = u64::MAX >> (at + BITS).saturating_sub(end);
                *word |= from & below;
            }
        }
        let largest = ranges.ranges().iter().map(|range| range.inner_pages());
        let largest = largest.max_by_key(|range| range.bytes());
        let held = (words.len() * BITS) as u64;
        let (first, end) = largest.map_or((0, 0), |range| (range.start / 4096, range.end / 4096));
        Self {
            words,
            start: first * 4096 + Entry::TO_USER,
            count: end.min(held).saturating_sub(first),
        }
    }

    /// Whether a frame is in it.
    #[inline]
    #[must_use]
    pub fn contains(&self, frame: Frame) -> bool {
        self.tagged_in_largest(frame.start().0 | Entry::TO_USER)
            .is_some()
            || self.has_bit(frame)
    }

    /// The address above the low 12 bits of `tagged`, if these are [`Entry::TO_USER`], and the frame there is one of the largest range.
    #[inline]
    #[must_use]
    pub const fn tagged_in_largest(&self, tagged: u64) -> Option<PhysAddr> {
        // One comparison for both: where the low bits differ, their difference is rotated to the top.
        let index = tagged.wrapping_sub(self.start).rotate_right(12);
        if index < self.count {
            Some(PhysAddr(tagged - Entry::TO_USER))
        } else {
            None
        }
    }

    #[inline]
    fn has_bit(&self, frame: Frame) -> bool {
        let number = frame.0 as usize;
        self.words
            .get(number / BITS)
            .is_some_and(|word| word >> (number % BITS) & 1 == 1)
    }

    /// Whether these bytes lie in one frame, and that is in it.
    #[inline]
    #[must_use]
    pub fn holds(&self, at: PhysAddr, bytes: usize) -> bool {
        let Ok(frame) = u32::try_from(at.0 / 4096) else {
            return false;
        };
        self.contains(Frame(frame)) && bytes as u64 <= 4096 - at.0 % 4096
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::memory::Range;
    use proptest::prelude::*;

    fn set(ranges: &[(u64, u64)]) -> (FrameSet, RangeSet) {
        let mut of = RangeSet::new();
        for &(start, end) in ranges {
            of.insert(Range { start, end });
        }
        let highest = of.ranges().last().map_or(0, |range| range.end);
        let words = vec![0; FrameSet::words(highest)].leak();
        (FrameSet::new(words, &of), of)
    }

    #[test]
    fn bytes_must_lie_in_one_frame() {
        let (set, _) = set(&[(0x1000, 0x3000)]);
        assert!(set.holds(PhysAddr(0x1000), 4096) && set.holds(PhysAddr(0x2ff8), 8));
        assert!(!set.holds(PhysAddr(0x1008), 4096) && !set.holds(PhysAddr(0x2ff9), 8));
        assert!(!set.holds(PhysAddr(0xff8), 8) && !set.holds(PhysAddr(0x3000), 1));
        assert!(!set.holds(PhysAddr(u64::MAX - 7), 8));
        // 2^32 frames further on, a number of 32 bits would be the same.
        assert!(!set.holds(PhysAddr((1 << 44) + 0x1000), 8));
    }

    proptest! {
        #[test]
        fn it_is_what_the_ranges_say(
            ranges in prop::collection::vec((0u64..1 << 21, 0u64..1 << 20), 0..8)
        ) {
            let ranges: Vec<_> = ranges.iter().map(|&(at, bytes)| (at, at + bytes)).collect();
            let (set, of) = set(&ranges);
            let largest = of.ranges().iter().map(|range| range.inner_pages().bytes()).max();
            let tagged = (0..800u64).filter(|frame| set.tagged_in_largest((frame * 4096) | 5).is_some());
            prop_assert_eq!(tagged.count() as u64 * 4096, largest.unwrap_or(0));
            for frame in 0..800 {
                let whole = of.contains(Range::sized(u64::from(frame) * 4096, 4096));
                prop_assert_eq!(set.contains(Frame(frame)), whole, "{}", frame);
                prop_assert_eq!(set.has_bit(Frame(frame)), whole, "{}", frame);
                let at = u64::from(frame) * 4096;
                let here = set.tagged_in_largest(at | 5);
                prop_assert!(here.is_none() || whole && here == Some(PhysAddr(at)));
                let others = [at, at | 4, at | 7, at | 0x805, at | 5 | 1 << 44, at | 5 | 1 << 63];
                prop_assert!(others.iter().all(|&tagged| set.tagged_in_largest(tagged).is_none()));
            }
        }
    }
}
