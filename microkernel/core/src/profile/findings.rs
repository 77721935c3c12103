//! What was found about a record, besides its frames.

use super::walk::End;
use ipc::abi::profile::{STACK_WORDS, flags};

/// Parts of a chain, as [`flags::incomplete`] counts them: the kernel's frames, the program's, and from there on the clients'.
pub(super) const KERNEL: usize = 0;
pub(super) const PROGRAM: usize = 1;
pub(super) const CLIENTS: usize = 2;

/// What was found about a record, besides its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Findings {
    /// As bits of a record's header.
    pub flags: u16,
    /// Words from the top of the stack, which precede the frames.
    pub stack: u8,
    /// A part ended where it could not be believed.
    pub cut: bool,
    /// A part ended where the stack was not mapped.
    pub unmapped: bool,
}

impl Findings {
    /// Nothing but a whole top of a stack.
    pub(super) const USUAL: Self = Self {
        stack: STACK_WORDS as u8,
        ..Self::of(0)
    };

    /// Nothing yet, of what was interrupted in a context with these flags.
    pub(super) const fn of(context: u16) -> Self {
        Self {
            flags: context,
            stack: 0,
            cut: false,
            unmapped: false,
        }
    }

    /// This part of it ended so.
    #[inline]
    pub(super) fn end(&mut self, part: usize, end: End) {
        if end == End::Complete {
            return;
        }
        self.flags |= flags::incomplete(part);
        match end {
            End::Complete => {}
            End::Truncated => self.flags |= flags::TRUNCATED,
            End::Cut => {
                self.flags |= flags::CUT;
                self.cut = true;
            }
            End::Unmapped => {
                self.flags |= flags::CUT;
                self.unmapped = true;
            }
        }
    }

    /// There were more frames or clients than were kept.
    pub(super) fn truncated(&mut self) {
        self.flags |= flags::TRUNCATED;
    }
}
