//! Which NMI was asked for. An NMI says nothing of where it comes from, so who is about to cause one says so first, in a word
//! of the CPU that it goes to.
//!
//! # Why the claim is exact
//! The word is set before the NMI is sent and taken by the handler, once. Nobody sends while it is set, and it is set until the sample is
//! taken. So between two sends to a CPU its handler has run and taken the word: at most one NMI that was asked for is ever on its way, and
//! two never become one in the CPU's single pending bit (Intel SDM volume 3, "Handling Multiple NMIs"). Hence as many NMIs are taken as
//! were asked for, and one that finds the word clear is foreign.
//!
//! # Who writes it
//! Others change the word only where it is clear, and the CPU itself where it is not: so the handler need not exchange what it takes.

use core::sync::atomic::{AtomicU8, Ordering};

/// How it stands with the NMIs of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// None was asked for.
    Free,
    /// One was, and has not come.
    OnItsWay,
    /// Its sample is being taken.
    Taken,
}

/// What an NMI is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// To show that it arrives.
    Proof = 1,
    /// To take a sample.
    Sample = 2,
}

const NOTHING: u8 = 0;
const SAMPLE: u8 = Purpose::Sample as u8;
/// A sample that was asked for is being taken.
const TAKEN: u8 = 3;

/// The NMI that a CPU is about to get.
#[derive(Debug, Default)]
pub struct Expected(AtomicU8);

impl Expected {
    /// Announces an NMI. False if one is on its way, or its sample is being taken: then none is to be sent.
    #[must_use]
    #[inline]
    pub fn announce(&self, purpose: Purpose) -> bool {
        // Acquire and release: the send comes after this on the sender's side, the handler's look after the send.
        self.0
            .compare_exchange(NOTHING, purpose as u8, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Announces the next NMI, on its own CPU, where nobody else announces any. One that is still on its way is that one.
    #[inline]
    pub(super) fn announce_own(&self) {
        self.0.store(SAMPLE, Ordering::Release);
    }

    /// Takes the announcement of the NMI that is being handled; `None` if there was none. After a sample's, none is announced before
    /// the sample [is taken](Self::is_taken).
    #[inline]
    pub fn claim(&self) -> Option<Purpose> {
        let word = self.0.load(Ordering::Acquire);
        if word != SAMPLE {
            return self.seldom(word);
        }
        self.0.store(TAKEN, Ordering::Relaxed);
        Some(Purpose::Sample)
    }

    #[cold]
    fn seldom(&self, word: u8) -> Option<Purpose> {
        if word == NOTHING {
            return None;
        }
        self.0.store(NOTHING, Ordering::Release);
        Some(Purpose::Proof)
    }

    /// The sample that was claimed is taken, or is none.
    #[inline]
    pub(super) fn is_taken(&self) {
        // What the sample left is seen by who announces the next one.
        self.0.store(NOTHING, Ordering::Release);
    }

    /// How it stands. Where it is [`Standing::Free`], everything that the last sample left is seen.
    #[inline]
    pub(super) fn standing(&self) -> Standing {
        match self.0.load(Ordering::Acquire) {
            NOTHING => Standing::Free,
            TAKEN => Standing::Taken,
            _ => Standing::OnItsWay,
        }
    }

    /// Whether an announced NMI has not been handled yet.
    #[must_use]
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.standing() != Standing::Free
    }
}
