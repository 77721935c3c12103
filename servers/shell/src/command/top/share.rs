//! Parts of CPUs' time.

use core::fmt;

use crate::format::pad;

/// Parts that a whole CPU is counted in.
const MILLION: u128 = 1_000_000;

/// A part of one CPU, in millionths. Shown in percent, rounded to a tenth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(pub i64);

impl Share {
    /// This part of so much time.
    pub fn new(part: u64, whole: u64) -> Self {
        let millionths = u128::from(part) * MILLION / u128::from(whole).max(1);
        Self(i64::try_from(millionths).unwrap_or(i64::MAX))
    }
    /// All of so many CPUs.
    pub const fn cpus(count: usize) -> Self {
        Self(count as i64 * MILLION as i64)
    }
    /// All of these together.
    pub fn sum(shares: impl Iterator<Item = Self>) -> Self {
        Self(shares.map(|share| share.0).sum())
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.0.unsigned_abs().saturating_add(500) / 1000;
        let sign = if self.0 < 0 && tenths > 0 { "-" } else { "" };
        pad(f, format_args!("{sign}{}.{}", tenths / 10, tenths % 10))
    }
}

#[cfg(test)]
mod tests {
    use super::Share;

    #[test]
    fn shares_are_rounded_to_tenths_of_a_percent() {
        let shown =
            [0, 499, 500, 123_449, 1_000_000, -499, -500].map(|share| Share(share).to_string());
        assert_eq!(shown, ["0.0", "0.0", "0.1", "12.3", "100.0", "0.0", "-0.1"]);
        assert_eq!(Share::new(1, 0), Share::cpus(1));
        assert_eq!(Share::new(u64::MAX, 1), Share(i64::MAX));
        assert_eq!(format!("{:>6}", Share(1000)), "   0.1");
    }
}
