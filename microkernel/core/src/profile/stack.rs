//! The two kinds of stack there are: a program's, behind its page tables, and this CPU's own in the kernel.
//!
//! Part of the sampling path; its rules are in [`super`].

use super::layout::KernelMap;
use super::machine::KernelWords;
use super::translate::{UserMemory, Window};
use super::walk::{End, FRAME_BYTES, Stack};
use crate::base::addr::Frame;
use crate::hardware::PhysMemory;
use ipc::abi::layout::USER_END;

/// A program's stack. The whole lower half may hold it: where exactly it is, only the program knows.
pub struct UserStack<'m, M: PhysMemory>(UserMemory<'m, M>);

impl<'m, M: PhysMemory> UserStack<'m, M> {
    /// The stacks of the address space with this root table.
    #[must_use]
    #[inline]
    pub const fn new(memory: &'m M, root: Frame) -> Self {
        Self(UserMemory::new(memory, root))
    }
}

impl<'m, M: PhysMemory> Stack for UserStack<'m, M> {
    type Near = Option<Window<M::Words<'m>>>;

    #[inline]
    fn near(&self) -> Self::Near {
        self.0.near()
    }
    #[inline]
    fn words<const N: usize>(near: Self::Near, at: u64) -> Option<[u64; N]> {
        near?.words(at)
    }
    #[inline]
    fn word(&mut self, at: u64) -> Option<u64> {
        self.0.read(at)
    }
    #[inline(never)]
    fn frame(&mut self, at: u64) -> Result<[u64; 2], End> {
        if !at.is_multiple_of(8) || at > USER_END - FRAME_BYTES {
            return Err(End::Cut);
        }
        match (self.0.read(at), self.0.read(at + 8)) {
            (Some(outer), Some(address)) => Ok([outer, address]),
            _ => Err(End::Unmapped),
        }
    }
    #[inline]
    fn is_inner(&self, address: u64) -> bool {
        // 0, which ends a chain, becomes the largest number.
        address.wrapping_sub(1) < USER_END - 1
    }
    fn odd_caller(&self, address: u64) -> Result<(), End> {
        Err(if address == 0 {
            End::Complete
        } else {
            End::Cut
        })
    }
}

/// One of this CPU's kernel or IST stacks.
#[derive(Debug)]
pub(super) struct KernelStack<'m, W> {
    pub words: W,
    pub map: &'m KernelMap,
}

impl<W: KernelWords> Stack for KernelStack<'_, W> {
    type Near = W;

    fn near(&self) -> W {
        self.words
    }
    fn words<const N: usize>(near: W, at: u64) -> Option<[u64; N]> {
        if !at.is_multiple_of(8) || !near.span().holds(at, 8 * N as u64) {
            return None;
        }
        // All of them are there.
        Some(core::array::from_fn(|index| {
            near.word(at + 8 * index as u64).unwrap_or(0)
        }))
    }
    fn word(&mut self, at: u64) -> Option<u64> {
        self.words.word(at)
    }
    fn frame(&mut self, at: u64) -> Result<[u64; 2], End> {
        Self::words(self.words, at).ok_or(End::Cut)
    }
    // The call is what belongs to the caller; the address after it may be the next function's.
    fn is_inner(&self, address: u64) -> bool {
        let call = address.wrapping_sub(1);
        self.map.text.contains(call) && !self.map.in_stub(call)
    }
    fn odd_caller(&self, address: u64) -> Result<(), End> {
        match address {
            0 => Err(End::Complete),
            // A stub was entered with the program's RBP, and that is what its callee saved: it is not walked as the kernel's.
            _ if self.map.in_stub(address - 1) => Ok(()),
            _ => Err(End::Cut),
        }
    }
}
