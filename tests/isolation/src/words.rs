//! Words that look like random ones, the same each time.

/// Where the next comes from (Marsaglia, "Xorshift RNGs", 2003).
pub struct Words(u64);

impl Default for Words {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Words {
    /// The next one.
    pub const fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A canonical address of the upper half, of a word. Half of them are in the first 256 MiB of the direct map or in the image, where
    /// something is.
    pub const fn kernel_address(&mut self) -> u64 {
        let word = self.next();
        let at = match word >> 60 {
            0..4 => 0xffff_8000_0000_0000 | word & 0xfff_ffff,
            4..8 => 0xffff_ffff_8010_0000 + (word & 0xf_ffff),
            _ => 0xffff_8000_0000_0000 | word,
        };
        at & !7
    }
}
