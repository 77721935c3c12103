//! The digest that tells damaged bytes from those that were written: of the files in the boot archive and of the kernel's symbols.

/// Multiplier of FNV-1a, 64 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>): odd, so a product tells its factors apart.
const PRIME: u64 = 0x0100_0000_01b3;
/// What its sums begin with.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
/// FNV-1a's step over words of eight bytes, the lowest first, and the length in front: every program of the boot is read through here, and
/// a step for each byte was a fifth of what the boot executes. Each step maps sums one to one, so damage within one word is always
/// noticed. It is no protection against who damages on purpose.
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    let step = |sum: u64, word: u64| {
        let product = (sum ^ word).wrapping_mul(PRIME);
        // A product carries differences up, never down: without this, two words that differ in their highest bit would cancel out.
        product ^ product >> 32
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words
        .iter()
        .fold(step(BASIS, bytes.len() as u64), |sum, word| {
            step(sum, u64::from_le_bytes(*word))
        });
    rest.iter().fold(sum, |sum, &byte| step(sum, byte.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    /// Any bit, at each place of a word and behind the last one.
    #[test]
    fn a_damaged_bit_is_noticed() {
        let mut bytes: Vec<u8> = (0..29).collect();
        let mut seen = BTreeSet::from([digest(&bytes)]);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(seen.insert(digest(&bytes)), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn the_length_is_noticed() {
        let zeros = [0; 40];
        let sums: BTreeSet<u64> = (0..=40).map(|length| digest(&zeros[..length])).collect();
        assert_eq!(sums.len(), 41);
    }

    /// Two words that change places, and two whose highest bits change together.
    #[test]
    fn changes_that_cancel_out_in_a_sum_are_noticed() {
        let of = |words: [u64; 4]| digest(words.map(u64::to_le_bytes).as_flattened());
        const HIGH: u64 = 1 << 63;
        let whole = of([1, 2, 3, 4]);
        for changed in [
            [2, 1, 3, 4],
            [1 | HIGH, 2 | HIGH, 3, 4],
            [1 | HIGH, 2, 3 | HIGH, 4],
            [1, 2, 3 | HIGH, 4 | HIGH],
        ] {
            assert_ne!(of(changed), whole, "{changed:x?}");
        }
    }
}
