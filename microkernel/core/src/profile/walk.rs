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

/// What a return address is that belongs to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A caller's, from whose frame the walk goes on.
    Inner,
    /// The last one.
    Outermost,
}

/// A stack that can be walked.
pub trait Stack {
    /// The word at an address; `None` if it cannot be read.
    fn word(&mut self, at: u64) -> Option<u64>;
    /// The two words of a frame: the caller's frame pointer, and the return address.
    ///
    /// # Errors
    /// `Cut` if it is not 8-byte aligned or not in the stack's range with both of its words, `Unmapped` if they cannot be read.
    fn frame(&mut self, at: u64) -> Result<[u64; 2], End>;
    /// What a return address is.
    ///
    /// # Errors
    /// How the chain ended before it, if it is no part of it.
    fn caller(&self, address: u64) -> Result<Caller, End>;
}

/// How far a walk has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// Return addresses taken.
    pub taken: usize,
    /// The frame that is next.
    pub frame: u64,
    /// The lowest address that it may have.
    pub floor: u64,
}

impl Walk {
    /// Of the frames from `rbp` outwards, which lie at or above `rsp`.
    #[inline]
    pub(super) fn from(rsp: u64, rbp: u64) -> Self {
        Self {
            taken: 0,
            frame: rbp,
            // A frame pointer of 0 lies below each floor.
            floor: rsp.max(1),
        }
    }
}

/// Walks from `rbp` outwards and puts the return addresses into `places`, as long as there are any; says how many it put. Frames lie
/// at or above `rsp` and each above the one before, so there is no way round in a circle.
pub fn follow<S: Stack>(stack: &mut S, rsp: u64, rbp: u64, places: &[AtomicU64]) -> (usize, End) {
    follow_on(stack, Walk::from(rsp, rbp), places)
}

/// Goes on with a walk to its end.
pub(super) fn follow_on<S: Stack>(
    stack: &mut S,
    mut walk: Walk,
    places: &[AtomicU64],
) -> (usize, End) {
    let end = loop {
        if walk.frame < walk.floor {
            break if walk.frame == 0 {
                End::Complete
            } else {
                End::Cut
            };
        }
        let [outer, address] = match stack.frame(walk.frame) {
            Ok(words) => words,
            Err(end) => break end,
        };
        let last = match stack.caller(address) {
            Ok(Caller::Inner) => false,
            Ok(Caller::Outermost) => true,
            Err(end) => break end,
        };
        // So a frame is looked at for which there is no room: the chain may have ended before it.
        let Some(place) = places.get(walk.taken) else {
            break End::Truncated;
        };
        place.store(address, Ordering::Relaxed);
        walk.taken += 1;
        if last {
            break End::Complete;
        }
        // Both words are there, so this does not overflow.
        walk.floor = walk.frame + FRAME_BYTES;
        walk.frame = outer;
    };
    (walk.taken, end)
}
