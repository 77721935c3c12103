//! A set of small numbers that finds its next member in a bounded number of steps, however large and however sparse
//! it is.
//!
//! Words of 64 bits in levels: level 0 holds a bit per number, each further level a bit per word of the one below, set
//! while that word is not zero; the top level is one word. Six levels reach 2^32 numbers, at 65/64 of a bit
//! each. The words come from the caller, since the kernel has no heap.

/// Most levels: 64^6 is more than 2^32.
const LEVELS_MAX: usize = 6;
const BITS: usize = u64::BITS as usize;

/// A set of numbers below a bound.
#[derive(Debug)]
pub struct Bitmap {
    words: &'static mut [u64],
    /// Where each level begins in `words`; the entry after the last is where the top level ends.
    starts: [usize; LEVELS_MAX + 1],
    levels: usize,
    bound: usize,
}

impl Bitmap {
    /// Words that a set of numbers below `bound` takes.
    #[must_use]
    pub const fn words(bound: u32) -> usize {
        let (mut width, mut words) = (bound as usize, 0);
        loop {
            width = width.div_ceil(BITS);
            words += width;
            if width <= 1 {
                return words;
            }
        }
    }

    /// The empty set of numbers below `bound`; what `words` held is lost.
    ///
    /// # Panics
    /// If there are fewer words than [`Bitmap::words`] says: a mistake of the boot code.
    #[must_use]
    pub fn new(words: &'static mut [u64], bound: u32) -> Self {
        assert!(
            words.len() >= Self::words(bound),
            "too few words for the set"
        );
        words.fill(0);
        let mut starts = [0; LEVELS_MAX + 1];
        let (mut width, mut levels) = (bound as usize, 0);
        loop {
            width = width.div_ceil(BITS);
            starts[levels + 1] = starts[levels] + width;
            levels += 1;
            if width <= 1 {
                break;
            }
        }
        Self {
            words,
            starts,
            levels,
            bound: bound as usize,
        }
    }

    /// Whether `number` is in the set.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        let number = number as usize;
        number < self.bound && self.words[number / BITS] >> (number % BITS) & 1 == 1
    }

    /// Puts `number`, which is below the bound, into the set.
    pub fn insert(&mut self, number: u32) {
        let mut at = number as usize;
        for level in 0..self.levels {
            let word = &mut self.words[self.starts[level] + at / BITS];
            let was = *word;
            *word |= 1 << (at % BITS);
            if was != 0 {
                return;
            }
            at /= BITS;
        }
    }

    /// Takes `number`, which is below the bound, out of the set.
    pub fn remove(&mut self, number: u32) {
        let mut at = number as usize;
        for level in 0..self.levels {
            let word = &mut self.words[self.starts[level] + at / BITS];
            *word &= !(1 << (at % BITS));
            if *word != 0 {
                return;
            }
            at /= BITS;
        }
    }

    /// The least member that is not below `from`. Looks at two words a level at most.
    #[must_use]
    pub fn next(&self, from: u32) -> Option<u32> {
        let (mut at, mut level) = (from as usize, 0);
        // Up, until a word has a member at or after the place looked at.
        loop {
            let index = self.starts[level] + at / BITS;
            if index >= self.starts[level + 1] {
                return None;
            }
            let rest = self.words[index] >> (at % BITS);
            if rest != 0 {
                at += rest.trailing_zeros() as usize;
                break;
            }
            at = at / BITS + 1;
            level += 1;
            if level == self.levels {
                return None;
            }
        }
        // Down again, to its first member.
        while level > 0 {
            level -= 1;
            at = at * BITS + self.words[self.starts[level] + at].trailing_zeros() as usize;
        }
        Some(at as u32)
    }

    /// How many members follow one another from `from` on, counted up to `most`. Looks at `most / 64 + 2` words at most.
    #[must_use]
    pub fn run(&self, from: u32, most: u32) -> u32 {
        let (mut at, end) = (
            from as usize,
            (from as usize + most as usize).min(self.bound),
        );
        while at < end {
            let rest = !self.words[at / BITS] >> (at % BITS);
            if rest != 0 {
                at += rest.trailing_zeros() as usize;
                break;
            }
            at = (at / BITS + 1) * BITS;
        }
        at.min(end).saturating_sub(from as usize) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(bound: u32) -> Bitmap {
        Bitmap::new(
            Box::leak(vec![!0; Bitmap::words(bound)].into_boxed_slice()),
            bound,
        )
    }

    #[test]
    fn sizes_are_those_of_the_levels() {
        assert_eq!(Bitmap::words(0), 0);
        assert_eq!(Bitmap::words(64), 1);
        assert_eq!(Bitmap::words(65), 2 + 1);
        assert_eq!(Bitmap::words(64 * 64 + 1), 65 + 2 + 1);
        let empty = set(0);
        assert!(empty.next(0).is_none() && !empty.contains(0) && empty.run(0, 9) == 0);
    }

    #[test]
    fn the_last_number_of_a_large_set_is_found() {
        let mut large = set(64 * 64 * 64 + 7);
        large.insert(64 * 64 * 64 + 6);
        assert_eq!(large.next(0), Some(64 * 64 * 64 + 6));
        assert_eq!(large.next(64 * 64 * 64 + 7), None);
        assert_eq!(large.next(u32::MAX), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn it_is_a_set(bound in 1..9000u32, steps in prop::collection::vec((any::<u32>(), 0..4u8, 1..200u32), 1..60)) {
            let (mut ours, mut model) = (set(bound), BTreeSet::new());
            for (pick, what, length) in steps {
                let number = pick % bound;
                // Whole runs, so that words fill up and empty again.
                for number in number..(number + length).min(bound) {
                    if what < 3 {
                        ours.insert(number);
                        model.insert(number);
                    } else {
                        ours.remove(number);
                        model.remove(&number);
                    }
                }
                for from in [0, number, number / 2, number + length, pick] {
                    prop_assert_eq!(ours.contains(from), model.contains(&from));
                    prop_assert_eq!(ours.next(from), model.range(from..).next().copied());
                    let run = (from..).take(150).take_while(|number| model.contains(number)).count();
                    prop_assert_eq!(ours.run(from, 150) as usize, run);
                }
            }
        }
    }
}
