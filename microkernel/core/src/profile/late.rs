//! NMIs of this CPU's own counter that come when their overflow has been dealt with: a counter's interrupt is not as exact as one that
//! is [announced](super::expected).
//!
//! It may be on its way while another NMI, or the tick, finds the overflow and acknowledges it; or while the counter is stopped. Some
//! processors deliver one more than they should (AMD, to whose handler the status is clear by then). All that is known is that an interrupt
//! follows an overflow closely, or is lost.
//!
//! # The bound
//! Each overflow that is acknowledged is good for one NMI without a cause, until the second tick of this CPU after it. Ticks, and not a
//! time, because an NMI that is pending is taken before any tick: a CPU that a hypervisor keeps from running does not let it expire.
//! Where an overflow was acknowledged by an NMI that an announced one may be part of, or by no NMI at all, there may be one more. So as many NMIs
//! that nobody caused may be taken for late ones, and no other.

use core::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// How many may come: those since the last tick in the low byte, those of the tick before in the high one.
#[derive(Debug, Default)]
pub(super) struct Late(AtomicU16);

const TICK_BITS: u32 = 8;
const RECENT: u16 = (1 << TICK_BITS) - 1;

impl Late {
    /// An NMI has acknowledged an overflow; `coalesced` if it was announced as well. Only in an NMI.
    #[inline]
    pub(super) fn taken(&self, coalesced: bool) {
        let word = self.0.load(Relaxed);
        let recent = (word & RECENT).max(1) + u16::from(coalesced);
        self.0.store(word & !RECENT | recent.min(RECENT), Relaxed);
    }

    /// An overflow is acknowledged, or given up, outside of an NMI. Said before that is done; at most once between two ticks.
    pub(super) fn owed(&self) {
        // Not in an NMI's way: there may be one between load and store.
        self.0.fetch_add(1, Relaxed);
    }

    /// An NMI without a cause. Whether it may be a late one. Only in an NMI.
    pub(super) fn claim(&self) -> bool {
        let word = self.0.load(Relaxed);
        let one = if word > RECENT { RECENT + 1 } else { 1 };
        if word == 0 {
            return false;
        }
        self.0.store(word - one, Relaxed);
        true
    }

    /// A tick of this CPU. Whether there can still be any.
    pub(super) fn tick(&self) -> bool {
        // Tried again only if an NMI came in between.
        let shifted = |word: u16| Some(word << TICK_BITS);
        match self.0.fetch_update(Relaxed, Relaxed, shifted) {
            Ok(word) | Err(word) => word & RECENT != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_for_each_until_the_second_tick() {
        let late = Late::default();
        assert!(!late.claim());
        late.taken(false);
        late.taken(false);
        assert!(
            late.claim() && !late.claim(),
            "not for those that it came in time for"
        );
        late.taken(true);
        late.owed();
        assert!(late.claim() && late.claim() && late.claim() && !late.claim());
        late.taken(false);
        assert!(late.tick());
        late.owed();
        assert!(late.claim() && late.tick());
        assert!(late.claim() && !late.claim());
        late.taken(true);
        assert!(late.tick() && !late.tick());
        assert!(!late.claim(), "expired");
    }
}
