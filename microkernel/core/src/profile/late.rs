//! NMIs of this CPU's own counter that come when their overflow has been dealt with: a counter's interrupt is not as exact as one
//! that is [announced](super::expected).
//!
//! It may be on its way while another NMI, or the tick, finds the overflow and acknowledges it; or while the counter is stopped.
//! Some processors deliver one more than they should (AMD, to whose handler the status is clear by then). All that is known is that
//! an interrupt follows an overflow closely, or is lost.
//!
//! # The bound
//! An overflow has two NMIs at most. One that an NMI acknowledges is good for another without a cause; for two, if that NMI was
//! announced as well, or if it is acknowledged by no NMI at all. They are until the second tick of this CPU after it. Ticks, and
//! not a time, because an NMI that is pending is taken before any tick: a CPU that a hypervisor keeps from running does not let it
//! expire. So as many NMIs that nobody caused may be taken for late ones, and no other.
//!
//! Rejected: one at most that an NMI's overflow is good for, however many there were. An interrupt that is late may find the next
//! overflow, whose own is late then; so it goes on, and what was good for the first expires meanwhile.
//!
//! The overflow of the proof is good for as many. No run follows that would let them expire, so the CPUs that are owed some begin
//! as if one had ended: with the second tick after the boot there are none.

use crate::sched::load::add;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many may come: those since the last tick in the lower half, those of the tick before in the upper one. A half holds more than
/// there are: even without a pause, so many NMIs take minutes.
#[derive(Debug, Default)]
pub(super) struct Late(AtomicU64);

const TICK_BITS: u32 = 32;
const RECENT: u64 = (1 << TICK_BITS) - 1;

impl Late {
    /// An NMI has acknowledged an overflow; once more if it was announced as well. Only in an NMI.
    #[inline]
    pub(super) fn taken(&self) {
        add(&self.0, 1);
    }

    /// An overflow is acknowledged, or given up, outside of an NMI, so that so many may come. Said before that is done.
    pub(super) fn owed(&self, nmis: u64) {
        // Not in an NMI's way: there may be one between load and store.
        self.0.fetch_add(nmis, Relaxed);
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

    /// Whether there can still be any.
    pub(super) fn may_come(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    /// A tick of this CPU. Whether there can still be any.
    pub(super) fn tick(&self) -> bool {
        // Tried again only if an NMI came in between.
        let shifted = |word: u64| Some(word << TICK_BITS);
        match self.0.fetch_update(Relaxed, Relaxed, shifted) {
            Ok(word) | Err(word) => word & RECENT != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(late: &Late) -> usize {
        core::iter::repeat_with(|| late.claim())
            .take_while(|&claimed| claimed)
            .count()
    }

    #[test]
    fn as_many_as_are_said_until_the_second_tick() {
        let late = Late::default();
        assert!(!late.may_come() && claimed(&late) == 0);
        late.taken();
        late.taken();
        assert!(late.may_come() && claimed(&late) == 2);
        late.taken();
        late.owed(2);
        assert_eq!(claimed(&late), 3);
        late.taken();
        assert!(late.tick());
        late.owed(1);
        assert!(late.claim(), "of the tick before");
        assert!(late.tick());
        assert_eq!(claimed(&late), 1);
        late.taken();
        assert!(late.tick() && !late.tick());
        assert_eq!(claimed(&late), 0, "expired");
    }

    #[test]
    fn as_many_as_there_can_be_are_not_another_ticks() {
        let late = Late::default();
        late.owed(RECENT - 1);
        late.taken();
        assert!(late.tick() && !late.tick());
        assert!(!late.may_come());
    }
}
