//! The two kinds of stack there are: a program's, behind its page tables, and this CPU's own in the kernel.
//!
//! Part of the sampling path; its rules are in [`super`].

use super::layout::KernelMap;
use super::machine::KernelWords;
use super::translate::UserMemory;
use super::walk::{Caller, End, FRAME_BYTES, Stack};
use crate::base::addr::Frame;
use crate::hardware::PhysMemory;
use ipc::abi::layout::USER_END;

/// A program's stack. The whole lower half may hold it: where exactly it is, only the program knows.
pub struct UserStack<'m, M: PhysMemory>(UserMemory<'m, M>);

impl<'m, M: PhysMemory> UserStack<'m, M> {
    /// The stacks of the address space with this root table.
    #[must_use]
    pub const fn new(memory: &'m M, root: Frame) -> Self {
        Self(UserMemory::new(memory, root))
    }

    /// A frame that is not, or not whole, in the part of a page that was read last.
    #[inline(never)]
    fn far_frame(&mut self, at: u64) -> Result<[u64; 2], End> {
        if !at.is_multiple_of(8) || at > USER_END - FRAME_BYTES {
            return Err(End::Cut);
        }
        match (self.0.read(at), self.0.read(at + 8)) {
            (Some(outer), Some(address)) => Ok([outer, address]),
            _ => Err(End::Unmapped),
        }
    }
}

impl<M: PhysMemory> Stack for UserStack<'_, M> {
    #[inline]
    fn frame(&mut self, at: u64) -> Result<[u64; 2], End> {
        match self.0.near(at) {
            Some(words) => Ok(words),
            None => self.far_frame(at),
        }
    }
    fn word(&mut self, at: u64) -> Option<u64> {
        self.0.read(at)
    }
    #[inline]
    fn near<const N: usize>(&self, at: u64) -> Option<[u64; N]> {
        self.0.near(at)
    }
    #[inline]
    fn caller(&self, address: u64) -> Caller {
        if address < USER_END {
            Caller::Inner
        } else {
            Caller::Absurd
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
    fn frame(&mut self, at: u64) -> Result<[u64; 2], End> {
        if !self.words.span().holds(at, FRAME_BYTES) {
            return Err(End::Cut);
        }
        match (self.words.word(at), self.words.word(at + 8)) {
            (Some(outer), Some(address)) => Ok([outer, address]),
            // In the stack, so it is not aligned.
            _ => Err(End::Cut),
        }
    }
    fn word(&mut self, at: u64) -> Option<u64> {
        self.words.word(at)
    }
    fn caller(&self, address: u64) -> Caller {
        // The call is what belongs to the caller; the address after it may be the next function's.
        let call = address.wrapping_sub(1);
        // A stub was entered with the program's RBP, and that is what its callee saved: it is not walked as the kernel's.
        if self.map.in_stub(call) {
            Caller::Outermost
        } else if self.map.text.contains(call) {
            Caller::Inner
        } else {
            Caller::Absurd
        }
    }
}
