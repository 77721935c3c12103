//! How often something may be done that costs more than the datagram that asks for it.

use crate::time::Instant;

/// Tokens that come back one by one.
pub(super) struct Bucket {
    /// Most tokens, and how many there are.
    most: u64,
    left: u64,
    /// Nanoseconds for one to come back.
    each: u64,
    /// Until when they were counted.
    counted: Instant,
}

impl Bucket {
    pub(super) const fn new(most: u64, per_second: u64) -> Self {
        Self {
            most,
            left: most,
            each: 1_000_000_000 / per_second,
            counted: Instant::from_nanos(0),
        }
    }
    /// Takes one, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let nanos = now.as_nanos().saturating_sub(self.counted.as_nanos());
        let back = nanos / self.each;
        self.left = self.left.saturating_add(back).min(self.most);
        self.counted = Instant::from_nanos(self.counted.as_nanos() + back * self.each);
        let has = self.left > 0;
        self.left -= u64::from(has);
        has
    }
}
