//! How many messages that a port is not there are sent: the address that they go to anybody may have put into the datagram, and they
//! are longer than the shortest one.

/// Messages that a port is not there which are sent in a row.
const UNREACHABLES_MAX: u64 = 50;
/// Nanoseconds from one to the next, when all those have gone.
const UNREACHABLE_NS: u64 = 10_000_000;

/// Messages that may still be sent.
#[derive(Debug)]
pub struct Bucket {
    tokens: u64,
    /// When the last token came.
    filled: u64,
}

impl Default for Bucket {
    fn default() -> Self {
        Self {
            tokens: UNREACHABLES_MAX,
            filled: 0,
        }
    }
}

impl Bucket {
    /// Takes a token, if there is one.
    pub const fn take(&mut self, now: u64) -> bool {
        let new = now.saturating_sub(self.filled) / UNREACHABLE_NS;
        self.filled = self.filled.saturating_add(new * UNREACHABLE_NS);
        self.tokens = self.tokens.saturating_add(new);
        if self.tokens > UNREACHABLES_MAX {
            self.tokens = UNREACHABLES_MAX;
        }
        let is_there = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        is_there
    }
}
