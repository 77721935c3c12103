//! Gives a leaf its caller back.
//!
//! When the interrupted instruction lies before its function's frame exists, or after it is gone, RBP is the caller's, and
//! the walk that starts there goes straight to the caller's caller. The caller's return address is then on top of the
//! interrupted stack, of which the record keeps a few words; the unwind table says which.

use sample_ring::Sample;

use crate::unwind::Rule;

/// What the unwind table says of a leaf's caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The walk did not miss it, or there is none, or there is nothing to tell by.
    Walked,
    /// The walk missed it: this is its return address.
    Restored(u64),
    /// The walk missed it, and the record does not hold it.
    Lost,
}

/// Finds the caller of a sample's leaf. `is_code` tells whether a word can be a return address.
#[must_use]
pub fn caller(sample: &Sample, rule: Rule, is_code: impl Fn(u64) -> bool) -> Caller {
    let Rule::StackPointer { frame, slot } = rule else {
        return Caller::Walked;
    };
    // A frame is two words, RBP's and the return address; a table may go on counting from RSP though RBP points to it.
    let frame_pointer = sample.rsp().wrapping_add_signed(frame).wrapping_sub(16);
    if sample.rbp() == frame_pointer && frame > 8 {
        return Caller::Walked;
    }
    let word = usize::try_from(slot).ok().filter(|slot| slot % 8 == 0);
    match word.and_then(|slot| sample.stack().get(slot / 8)) {
        // The outermost function, before its frame: a walk that comes that far ends at this word, too.
        Some(0) => Caller::Walked,
        Some(&address) if is_code(address) => Caller::Restored(address),
        _ => Caller::Lost,
    }
}
