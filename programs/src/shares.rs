//! How much of each loop the program `shares` runs in a round.

use core::ops::RangeInclusive;

use heapless::Vec;

use crate::arguments::{ArgumentError, Arguments, WORDS_MAX};

/// Most shares: `share_a` to `share_j`.
pub const SHARES_MAX: usize = 10;
/// What a share may be.
pub const SHARE: RangeInclusive<u64> = 1..=100;
/// Iterations of a round, all shares together, unless the shares alone are more. An iteration is about five instructions: a
/// round takes well under 100 µs even where a core is emulated, so every sample falls into some round's true mix.
const ROUND: u64 = 2000;

/// The iterations of each loop in one round.
///
/// # Errors
/// No share, or one that is out of range.
pub fn round<'a>(arguments: &Arguments<'a>) -> Result<Vec<u64, WORDS_MAX>, ArgumentError<'a>> {
    let mut shares = arguments.numbers("SHARE", &SHARE)?;
    let unit = (ROUND / shares.iter().sum::<u64>()).max(1);
    for share in &mut shares {
        *share *= unit;
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_of(words: &[&'static str]) -> Result<Vec<u64, WORDS_MAX>, ArgumentError<'static>> {
        round(&Arguments::parse(
            words.iter().copied(),
            SHARES_MAX,
            "shares",
        )?)
    }

    #[test]
    fn iterations_are_in_proportion() {
        assert_eq!(round_of(&["60", "30", "10"]).unwrap(), [1200, 600, 200]);
        assert_eq!(round_of(&["1"]).unwrap(), [2000]);
        let most = round_of(&["100"; SHARES_MAX]).unwrap();
        assert!(most.iter().all(|&share| share == 200));
        assert_eq!(round_of(&["99", "1", "1"]).unwrap(), [99 * 19, 19, 19]);
    }

    #[test]
    fn wrong_shares_are_refused() {
        for words in [&[][..], &["0"], &["101"], &["1", "x"], &["1"; 11]] {
            assert!(round_of(words).is_err(), "{words:?}");
        }
    }
}
