//! Which datagrams have come back: a bit for each of the last ones.

/// Numbers that are remembered, back from the highest that came. One that is older counts as new: that late, it cannot be told whether it is.
const WINDOW: u64 = 1 << 16;
const BITS: u64 = u64::BITS as u64;

/// The numbers seen.
#[derive(Debug)]
pub struct Seen {
    bits: Vec<u64>,
    /// One more than the highest number.
    end: u64,
}

impl Default for Seen {
    fn default() -> Self {
        let words = usize::try_from(WINDOW / BITS).unwrap_or(usize::MAX);
        Self {
            bits: vec![0; words],
            end: 0,
        }
    }
}

impl Seen {
    /// Notes a number; whether it is new.
    pub fn insert(&mut self, number: u64) -> bool {
        if number >= self.end {
            // What a number now stands for was another's before.
            let first = self.end.max(number.saturating_sub(WINDOW - 1));
            for between in first..=number {
                *self.word(between) &= !bit(between);
            }
            self.end = number + 1;
        } else if self.end - number > WINDOW {
            return true;
        }
        let word = self.word(number);
        let is_new = *word & bit(number) == 0;
        *word |= bit(number);
        is_new
    }

    fn word(&mut self, number: u64) -> &mut u64 {
        let index = number / BITS % (WINDOW / BITS);
        &mut self.bits[usize::try_from(index).unwrap_or(usize::MAX)]
    }
}

const fn bit(number: u64) -> u64 {
    1 << (number % BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_new_once_in_whatever_order() {
        let mut seen = Seen::default();
        for number in [0, 5, 3, 64, 63, 1, 1000, 999] {
            assert!(seen.insert(number), "{number}");
            assert!(!seen.insert(number), "{number} again");
        }
        assert!(seen.insert(2));
    }

    #[test]
    fn numbers_of_a_window_ago_are_forgotten_and_not_taken_for_others() {
        let mut seen = Seen::default();
        for number in 0..3 * WINDOW {
            assert!(seen.insert(number));
        }
        assert!(!seen.insert(2 * WINDOW), "the oldest that is remembered");
        assert!(seen.insert(2 * WINDOW - 1));
        assert!(seen.insert(10 * WINDOW + 7));
        assert!(
            seen.insert(9 * WINDOW + 8),
            "its place was another's before"
        );
        assert!(!seen.insert(9 * WINDOW + 8));
    }
}
