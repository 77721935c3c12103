//! The frame-pointer walk: from RBP to the caller's RBP and return address, again and again, believing nothing.
//!
//! Part of the sampling path; its rules are in [`super`]. With frame pointers forced in every image, `[rbp]` is the caller's
//! RBP and `[rbp + 8]` the return address (System V ABI for AMD64, section 3.2.2). Outermost frames have RBP 0, which is
//! how threads start.

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

/// What a return address is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A caller; the walk goes on from its frame.
    Inner,
    /// A caller whose own frame is not to be walked: it ends the chain.
    Outermost,
    /// No caller.
    Absurd,
}

/// A stack that can be walked.
pub trait Stack {
    /// The two words of a frame: the caller's frame pointer, and the return address.
    ///
    /// # Errors
    /// `Cut` if it is not 8-byte aligned or not in the stack's range with both of its words, `Unmapped` if they cannot be read.
    fn frame(&mut self, at: u64) -> Result<[u64; 2], End>;
    /// The word at an 8-byte aligned address; `None` if it cannot be read.
    fn word(&mut self, at: u64) -> Option<u64>;
    /// The `N` words from an address upwards, if they can be read all at once; else they are to be read one by one.
    fn near<const N: usize>(&self, _: u64) -> Option<[u64; N]> {
        None
    }
    /// What this return address is worth.
    fn caller(&self, address: u64) -> Caller;
}

/// Walks from `rbp` outwards and gives each return address to `push`, at most `limit` of them. Frames lie at or above `rsp`
/// and each above the one before, so there is no way round in a circle.
#[inline]
pub fn follow<S: Stack>(
    stack: &mut S,
    rsp: u64,
    rbp: u64,
    limit: usize,
    mut push: impl FnMut(u64),
) -> End {
    let (mut floor, mut frame) = (rsp, rbp);
    // One frame beyond the limit is looked at: it may be where the chain ends.
    for taken in 0..=limit {
        if frame == 0 {
            return End::Complete;
        }
        if frame < floor {
            return End::Cut;
        }
        let [outer, address] = match stack.frame(frame) {
            Ok(words) => words,
            Err(end) => return end,
        };
        if address == 0 {
            return End::Complete;
        }
        match stack.caller(address) {
            Caller::Inner | Caller::Outermost if taken == limit => break,
            Caller::Inner => push(address),
            Caller::Outermost => {
                push(address);
                return End::Complete;
            }
            Caller::Absurd => return End::Cut,
        }
        // Both words are there, so this does not overflow.
        floor = frame + FRAME_BYTES;
        frame = outer;
    }
    End::Truncated
}
