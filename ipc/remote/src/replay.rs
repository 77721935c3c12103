//! Which packets of a session have been taken already.

/// How far behind the newest packet one may come, in packets.
const WINDOW: u64 = 128;

/// The newest number, and which of the 128 up to it have come.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    /// One more than the newest number: 0 before the first packet.
    end: u64,
    /// Bit N: number `end - 1 - N` has come.
    seen: u128,
}

impl Replay {
    pub(crate) const fn new() -> Self {
        Self { end: 0, seen: 0 }
    }
    /// Whether a packet of this number may still be taken: it has not come, and is not too old to know.
    pub(crate) fn is_fresh(&self, number: u64) -> bool {
        match self.end.checked_sub(number) {
            // The last number there is cannot be noted down as taken; no end comes to it.
            _ if number == u64::MAX => false,
            None | Some(0) => true,
            Some(age) => age <= WINDOW && self.seen & (1 << (age - 1)) == 0,
        }
    }
    /// Takes one. Only to be called with what has been authenticated: else a forger could move the window.
    pub(crate) fn take(&mut self, number: u64) {
        let Some(end) = number.checked_add(1) else {
            return;
        };
        if end > self.end {
            let steps = end - self.end;
            self.seen = if steps < WINDOW {
                self.seen << steps
            } else {
                0
            };
            self.end = end;
        }
        let age = self.end - end;
        if age < WINDOW {
            self.seen |= 1 << age;
        }
    }
}
