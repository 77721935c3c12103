//! What was found about a chain, besides its frames.

use super::walk::End;
use ipc::abi::profile::flags;

/// Parts of a chain, as [`flags::incomplete`] counts them: the kernel's frames, the program's, and from there on the clients'.
pub(super) const KERNEL: usize = 0;
pub(super) const PROGRAM: usize = 1;
pub(super) const CLIENTS: usize = 2;

/// What was found about a chain, besides its frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// As bits of a record's header.
    pub flags: u16,
    /// A part ended where it could not be believed.
    pub cut: bool,
    /// A part ended where the stack was not mapped.
    pub unmapped: bool,
}

impl Findings {
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
