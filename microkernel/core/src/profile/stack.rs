//! The two kinds of stack there are: a program's, behind its page tables, and this CPU's own in the kernel.
//!
//! Part of the sampling path; its rules are in [`super`].

use super::layout::KernelMap;
use super::machine::KernelWords;
use super::translate::{UserMemory, Window};
use super::walk::{Caller, End, FRAME_BYTES, Stack};
use crate::base::addr::Frame;
use crate::hardware::PhysWords;
use ipc::abi::layout::USER_END;

/// A program's stack. The whole lower half may hold it: where exactly it is, only the program knows.
pub struct UserStack<'m, M: PhysWords>(UserMemory<'m, M>);

impl<'m, M: PhysWords> UserStack<'m, M> {
    /// The stacks of the address space with this root table.
    #[must_use]
    #[inline]
    pub const fn new(memory: &'m M, root: Frame) -> Self {
        Self(UserMemory::new(memory, root))
    }
    /// The same, with a page of it at hand.
    #[must_use]
    #[inline]
    pub(super) const fn at(memory: &'m M, root: Frame, page: Window<M::Words<'m>>) -> Self {
        Self(UserMemory::at(memory, root, page))
    }
}

impl<M: PhysWords> Stack for UserStack<'_, M> {
    #[inline]
    fn word(&mut self, at: u64) -> Option<u64> {
        self.0.read(at)
    }
    fn frame(&mut self, at: u64) -> Result<[u64; 2], End> {
        if !at.is_multiple_of(8) || at > USER_END - FRAME_BYTES {
            return Err(End::Cut);
        }
        match (self.0.read(at), self.0.read(at + 8)) {
            (Some(outer), Some(address)) => Ok([outer, address]),
            _ => Err(End::Unmapped),
        }
    }
    fn caller(&self, address: u64) -> Result<Caller, End> {
        match address {
            0 => Err(End::Complete),
            1..USER_END => Ok(Caller::Inner),
            _ => Err(End::Cut),
        }
    }
}

/// One of this CPU's kernel or IST stacks.
#[derive(Debug)]
pub(super) struct KernelStack<'m, W> {
    pub words: W,
    pub map: &'m KernelMap,
}

impl<W: KernelWords> Stack for KernelStack<'_, W> {
    fn word(&mut self, at: u64) -> Option<u64> {
        self.words.word(at)
    }
    fn frame(&mut self, at: u64) -> Result<[u64; 2], End> {
        let above = at.checked_add(8);
        let words = (
            self.words.word(at),
            above.and_then(|at| self.words.word(at)),
        );
        let (Some(outer), Some(address)) = words else {
            return Err(End::Cut);
        };
        Ok([outer, address])
    }
    fn caller(&self, address: u64) -> Result<Caller, End> {
        // The call is what belongs to the caller; the address after it may be the next function's.
        let call = address.wrapping_sub(1);
        if address == 0 {
            Err(End::Complete)
        } else if self.map.in_stub(call) {
            // A stub was entered with the program's RBP, and that is what its callee saved: it is not walked as the kernel's.
            Ok(Caller::Outermost)
        } else if self.map.text.contains(call) {
            Ok(Caller::Inner)
        } else {
            Err(End::Cut)
        }
    }
}
