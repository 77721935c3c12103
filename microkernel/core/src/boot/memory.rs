//! Sets of address ranges: the RAM there is, and what of it is still free while the boot hands it out.

use heapless::Vec;

/// Most ranges in a set. Firmware reports a handful; memory beyond the last range that fits is not used.
pub const RANGES_MAX: usize = 64;
/// Bytes in a page.
const PAGE: u64 = 4096;

/// Addresses from `start` up to, but not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl Range {
    /// From an address and a size; a range that would run past the end of the address space ends there.
    #[must_use]
    pub const fn sized(start: u64, bytes: u64) -> Self {
        Self {
            start,
            end: start.saturating_add(bytes),
        }
    }
    /// Bytes in it.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
    /// Whether it shares a byte with another.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }
    /// The whole pages inside it.
    #[must_use]
    pub const fn inner_pages(self) -> Self {
        let start = self.start.saturating_add(PAGE - 1) & !(PAGE - 1);
        let end = self.end & !(PAGE - 1);
        Self {
            start,
            end: if end < start { start } else { end },
        }
    }
    /// All pages that it touches.
    #[must_use]
    pub const fn outer_pages(self) -> Self {
        Self {
            start: self.start & !(PAGE - 1),
            end: self.end.saturating_add(PAGE - 1) & !(PAGE - 1),
        }
    }
}

/// A sorted set of ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    ranges: Vec<Range, RANGES_MAX>,
}

impl RangeSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// The ranges, lowest first.
    #[must_use]
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// Bytes in all ranges.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.bytes()).sum()
    }

    /// Whether a whole range is in the set. Bounded by the logarithm of [`RANGES_MAX`].
    #[must_use]
    pub fn contains(&self, wanted: Range) -> bool {
        let after = self
            .ranges
            .partition_point(|range| range.start <= wanted.start);
        after
            .checked_sub(1)
            .and_then(|at| self.ranges.get(at))
            .is_some_and(|range| wanted.end <= range.end)
    }

    /// Whether any of a range is in the set.
    #[must_use]
    pub fn overlaps(&self, wanted: Range) -> bool {
        let mut ranges = self.ranges.iter();
        ranges.any(|range| range.overlaps(wanted))
    }

    /// Adds a range. What does not fit in the set is left out: memory that is not known is not used.
    pub fn insert(&mut self, mut new: Range) {
        if new.bytes() == 0 {
            return;
        }
        self.ranges.retain(|range| {
            let apart = range.end < new.start || new.end < range.start;
            if !apart {
                new.start = new.start.min(range.start);
                new.end = new.end.max(range.end);
            }
            apart
        });
        let at = self.ranges.partition_point(|range| range.start < new.start);
        // Full: this range is left out.
        let _ = self.ranges.insert(at, new);
    }

    /// Removes a range. Where that splits one and the set is full, the upper part is left out as well.
    pub fn remove(&mut self, gone: Range) {
        if gone.bytes() == 0 {
            return;
        }
        let mut at = 0;
        while let Some(&range) = self.ranges.get(at) {
            if range.end <= gone.start || gone.end <= range.start {
                at += 1;
                continue;
            }
            self.ranges.remove(at);
            let (below, above) = (
                Range {
                    start: range.start,
                    end: gone.start,
                },
                Range {
                    start: gone.end,
                    end: range.end,
                },
            );
            for part in [below, above] {
                if part.start < part.end && self.ranges.insert(at, part).is_ok() {
                    at += 1;
                }
            }
        }
    }

    /// Takes `bytes` out of the lowest range where they fit between `from` and `below`, at a multiple of `align` (a power
    /// of two). `None` if they fit nowhere.
    pub fn take(&mut self, bytes: u64, align: u64, from: u64, below: u64) -> Option<u64> {
        let start = self.ranges.iter().find_map(|range| {
            let start = range.start.max(from).checked_next_multiple_of(align)?;
            let end = start.checked_add(bytes)?;
            (end <= range.end.min(below)).then_some(start)
        })?;
        self.remove(Range::sized(start, bytes));
        Some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPACE: u64 = 256;

    fn model(set: &RangeSet) -> Vec<bool> {
        (0..SPACE)
            .map(|at| set.ranges().iter().any(|r| r.start <= at && at < r.end))
            .collect()
    }

    use std::vec::Vec;

    proptest! {
        #[test]
        fn a_set_is_the_set_of_its_addresses(
            steps in prop::collection::vec((any::<bool>(), 0..SPACE, 0..40u64), 0..60)
        ) {
            let mut set = RangeSet::new();
            let mut expected = vec![false; SPACE as usize];
            for (add, start, bytes) in steps {
                let range = Range { start, end: (start + bytes).min(SPACE) };
                if add { set.insert(range) } else { set.remove(range) }
                for at in range.start..range.end { expected[at as usize] = add; }
                prop_assert_eq!(&model(&set), &expected);
                prop_assert!(set.ranges().windows(2).all(|w| w[0].end < w[1].start));
                prop_assert_eq!(set.bytes(), expected.iter().filter(|&&is| is).count() as u64);
                let inside = expected[range.start as usize % 256..].iter().take(range.bytes() as usize).all(|&is| is);
                if range.bytes() > 0 { prop_assert_eq!(set.contains(range), inside); }
                // A range beside the one that was just changed.
                let beside = Range::sized(range.start.saturating_sub(9), 9);
                let touched = (beside.start..beside.end).any(|at| expected.get(at as usize) == Some(&true));
                prop_assert_eq!(set.overlaps(beside), touched);
            }
        }

        #[test]
        fn what_is_taken_was_there_and_is_gone(
            ranges in prop::collection::vec((0..SPACE, 1..60u64), 1..8),
            bytes in 1..32u64, align in 0..5u32, from in 0..SPACE, below in 0..2 * SPACE,
        ) {
            let mut set = RangeSet::new();
            for (start, bytes) in ranges { set.insert(Range::sized(start, bytes)); }
            let before = set.clone();
            if let Some(start) = set.take(bytes, 1 << align, from, below) {
                let taken = Range::sized(start, bytes);
                prop_assert!(before.contains(taken) && start.is_multiple_of(1 << align));
                prop_assert!(start >= from && taken.end <= below);
                prop_assert_eq!(before.bytes() - bytes, set.bytes());
                prop_assert!(!set.contains(Range::sized(start, 1)));
            } else {
                prop_assert_eq!(before.ranges(), set.ranges());
            }
        }
    }

    #[test]
    fn a_full_set_forgets_memory_rather_than_inventing_it() {
        let mut set = RangeSet::new();
        for at in 0..2 * RANGES_MAX as u64 {
            set.insert(Range::sized(at * 10, 5));
        }
        assert_eq!(set.bytes(), 5 * RANGES_MAX as u64);
        set.remove(Range::sized(2, 1));
        assert_eq!(set.bytes(), 5 * RANGES_MAX as u64 - 3);
        assert!(!set.contains(Range::sized(2, 1)) && !set.contains(Range::sized(3, 2)));
    }

    #[test]
    fn numbers_at_the_end_of_the_address_space_do_not_wrap() {
        let end = Range::sized(u64::MAX - 10, 100);
        assert_eq!(end.bytes(), 10);
        assert_eq!(end.inner_pages().bytes(), 0);
        let mut set = RangeSet::new();
        set.insert(end);
        assert_eq!(set.take(1, 4096, 0, u64::MAX), None);
        assert_eq!(set.take(u64::MAX, 1, 0, u64::MAX), None);
    }
}
