//! Which page ranges of an address space are in use, and where a new one fits.

use alloc::collections::BTreeMap;
use core::ops::Range;

/// Ranges in use inside a window of addresses.
#[derive(Debug)]
pub struct Ranges {
    window: Range<u64>,
    /// Start to end; disjoint.
    used: BTreeMap<u64, u64>,
}

impl Ranges {
    /// A window with nothing in use.
    #[must_use]
    pub const fn new(window: Range<u64>) -> Self {
        Self {
            window,
            used: BTreeMap::new(),
        }
    }

    /// Takes the lowest gap of `bytes` bytes; `None` if there is no such gap.
    ///
    /// The lowest, so that page tables stay few.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let mut start = self.window.start;
        for (&used_start, &used_end) in &self.used {
            if used_start - start >= bytes {
                break;
            }
            start = used_end;
        }
        let end = start
            .checked_add(bytes)
            .filter(|&end| bytes > 0 && end <= self.window.end)?;
        self.used.insert(start, end);
        Some(start)
    }

    /// Gives the range back that begins at `start`; whether there was one.
    pub fn give_back(&mut self, start: u64) -> bool {
        self.used.remove(&start).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn gaps_are_reused_and_the_window_ends() {
        let mut ranges = Ranges::new(100..200);
        assert_eq!(ranges.take(50), Some(100));
        assert_eq!(ranges.take(50), Some(150));
        assert_eq!(ranges.take(1), None);
        assert!(ranges.give_back(100));
        assert!(!ranges.give_back(100));
        assert_eq!(ranges.take(51), None);
        assert_eq!(ranges.take(20), Some(100));
        assert_eq!(ranges.take(30), Some(120));
        assert_eq!(ranges.take(0), None);
        assert_eq!(ranges.take(u64::MAX), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn taken_ranges_never_overlap(steps in prop::collection::vec((1..40u64, any::<bool>()), 1..60)) {
            let mut ranges = Ranges::new(1000..1400);
            let mut held: Vec<Range<u64>> = Vec::new();
            for (bytes, take) in steps {
                if take || held.is_empty() {
                    if let Some(start) = ranges.take(bytes) {
                        let new = start..start + bytes;
                        prop_assert!(new.start >= 1000 && new.end <= 1400);
                        prop_assert!(held.iter().all(|old| old.end <= new.start || new.end <= old.start));
                        held.push(new);
                    }
                } else {
                    let old = held.swap_remove(bytes as usize % held.len());
                    prop_assert!(ranges.give_back(old.start));
                }
            }
        }
    }
}
