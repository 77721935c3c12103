//! When a server that died is started again: soon, then later and later, then not at all.
//!
//! A server that dies at once each time would otherwise take a CPU for itself. Giving up also has an end for its callers:
//! the endpoint dies, and they fail at once instead of waiting for the next instance.

/// Delay of the first restart, in nanoseconds; each further one is twice as long.
pub const FIRST_DELAY: u64 = 20_000_000;
/// Restarts in a row until init gives up.
pub const ATTEMPTS: u32 = 5;
/// Delay, in nanoseconds, before a server is tried again for which there was no room. It did nothing wrong, so it is tried for ever: room
/// comes back when programs end.
pub const NO_ROOM_DELAY: u64 = 500_000_000;
/// A server that ran so long, in nanoseconds, was well: its next death is counted as its first.
pub const WELL: u64 = 10_000_000_000;

/// The deaths of one server in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    deaths: u32,
}

impl Backoff {
    /// The server died after it had run for `ran` nanoseconds: how long to wait before it is started again; `None`: give
    /// up.
    pub fn died(&mut self, ran: u64) -> Option<u64> {
        if ran >= WELL {
            self.deaths = 0;
        }
        let attempt = self.deaths;
        self.deaths += 1;
        (attempt < ATTEMPTS).then(|| FIRST_DELAY << attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_then_end() {
        let mut backoff = Backoff::default();
        let delays: [Option<u64>; 7] = core::array::from_fn(|_| backoff.died(0));
        let delay = |ms: u64| Some(ms * 1_000_000);
        assert_eq!(
            delays,
            [
                delay(20),
                delay(40),
                delay(80),
                delay(160),
                delay(320),
                None,
                None
            ]
        );
    }

    #[test]
    fn a_server_that_was_well_begins_anew() {
        let mut backoff = Backoff::default();
        assert!(backoff.died(0) < backoff.died(WELL - 1));
        assert_eq!(backoff.died(WELL), Some(FIRST_DELAY));
        assert_eq!(backoff.died(0), Some(2 * FIRST_DELAY));
    }
}
