//! The frame-pointer walk: from RBP to the caller's RBP and return address, again and again, believing nothing.
//!
//! Part of the sampling path; its rules are in [`super`]. With frame pointers forced in every image, `[rbp]` is the caller's
//! RBP and `[rbp + 8]` the return address (System V ABI for AMD64, section 3.2.2). Outermost frames have RBP 0, which is
//! how threads start.

use sample_ring::{AtomicU64, Ordering};

/// Bytes of a frame's two words: the caller's RBP and the return address.
pub(super) const FRAME_BYTES: u64 = 16;

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At the outermost frame.
    Complete,
    /// At the limit; there are more frames.
    Truncated,
    /// At a frame pointer or return address that cannot be one.
    Cut,
    /// At a frame that is not mapped, or not for the program.
    Unmapped,
}

/// A stack that can be walked.
pub trait Stack {
    /// The part of it that is at hand: what was read last.
    type Near: Copy;

    /// What is at hand.
    fn near(&self) -> Self::Near;
    /// The `N` words from an address upwards, if it is 8-byte aligned and they are at hand.
    fn words<const N: usize>(near: Self::Near, at: u64) -> Option<[u64; N]>;
    /// The word at an address, which is at hand afterwards; `None` if it cannot be read.
    fn word(&mut self, at: u64) -> Option<u64>;
    /// The two words of a frame, wherever it is: the caller's frame pointer, and the return address.
    ///
    /// # Errors
    /// `Cut` if it is not 8-byte aligned or not in the stack's range with both of its words, `Unmapped` if they cannot be read.
    fn frame(&mut self, at: u64) -> Result<[u64; 2], End>;
    /// Whether this return address is a caller's, from whose frame the walk goes on: what nearly all are.
    fn is_inner(&self, address: u64) -> bool;
    /// What becomes of a chain at another: it is the last, or no more part of it.
    ///
    /// # Errors
    /// How the chain ended before it.
    fn odd_caller(&self, address: u64) -> Result<(), End>;
}

/// Walks from `rbp` outwards and puts the return addresses into `places`, as long as there are any; says how many it put. Frames lie
/// at or above `rsp` and each above the one before, so there is no way round in a circle.
// Apart from its callers, so that the loop has the registers for itself.
#[inline(never)]
pub fn follow<S: Stack>(stack: &mut S, rsp: u64, rbp: u64, places: &[AtomicU64]) -> (usize, End) {
    // A frame pointer of 0 lies below each floor.
    let (mut floor, mut frame) = (rsp.max(1), rbp);
    let mut near = stack.near();
    let mut taken = 0;
    let end = loop {
        if frame < floor {
            break if frame == 0 { End::Complete } else { End::Cut };
        }
        let [outer, address] = match S::words(near, frame) {
            Some(words) => words,
            None => match stack.frame(frame) {
                Ok(words) => {
                    near = stack.near();
                    words
                }
                Err(end) => break end,
            },
        };
        let mut last = false;
        if !stack.is_inner(address) {
            match stack.odd_caller(address) {
                Ok(()) => last = true,
                Err(end) => break end,
            }
        }
        // So a frame is looked at for which there is no room: the chain may have ended before it.
        let Some(place) = places.get(taken) else {
            break End::Truncated;
        };
        place.store(address, Ordering::Relaxed);
        taken += 1;
        if last {
            break End::Complete;
        }
        // Both words are there, so this does not overflow.
        floor = frame + FRAME_BYTES;
        frame = outer;
    };
    (taken, end)
}
