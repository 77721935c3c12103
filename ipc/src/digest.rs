//! The digest that tells damaged bytes from those that were written: of the files in the boot archive and of the kernel's symbols.

/// FNV-1a, 64 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>): notices any single damaged byte, in three
/// instructions a byte. It is no protection against who damages on purpose.
#[must_use]
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the test vectors of the algorithm's reference.
    #[test]
    fn known_digests() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn changes_that_cancel_out_in_a_sum_are_noticed() {
        assert_ne!(fnv1a(b"abcd"), fnv1a(b"bacd"));
        assert_ne!(fnv1a(&[1, 2]), fnv1a(&[2, 1]));
    }
}
