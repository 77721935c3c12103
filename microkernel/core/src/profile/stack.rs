//! The two kinds of stack there are: a program's, behind its page tables, and this CPU's own in the kernel.
//!
//! Part of the sampling path; its rules are in [`super`].

use super::layout::{KernelMap, Span};
use super::machine::Machine;
use super::translate::UserMemory;
use super::walk::{Caller, FRAME_BYTES, Stack};
use crate::base::addr::Frame;
use crate::hardware::PhysMemory;
use ipc::abi::layout::USER_END;

/// A program's stack. The whole lower half may hold it: where exactly it is, only the program knows.
#[derive(Debug)]
pub struct UserStack<'m, M: PhysMemory>(UserMemory<'m, M>);

impl<'m, M: PhysMemory> UserStack<'m, M> {
    /// The stacks of the address space with this root table.
    #[must_use]
    pub const fn new(memory: &'m M, root: Frame) -> Self {
        Self(UserMemory::new(memory, root))
    }
}

impl<M: PhysMemory> Stack for UserStack<'_, M> {
    fn holds(&self, frame: u64) -> bool {
        frame <= USER_END - FRAME_BYTES
    }
    fn word(&mut self, at: u64) -> Option<u64> {
        self.0.read(at)
    }
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
pub(super) struct KernelStack<'m, M: Machine> {
    machine: &'m M,
    map: &'m KernelMap,
    span: Span,
}

impl<'m, M: Machine> KernelStack<'m, M> {
    /// The one of `stacks` that RSP points into, or to the end of: an empty stack.
    pub(super) fn of(
        machine: &'m M,
        map: &'m KernelMap,
        stacks: &[Span],
        rsp: u64,
    ) -> Option<Self> {
        let span = *stacks.iter().find(|span| span.holds(rsp, 0))?;
        Some(Self { machine, map, span })
    }
}

impl<M: Machine> Stack for KernelStack<'_, M> {
    fn holds(&self, frame: u64) -> bool {
        self.span.holds(frame, FRAME_BYTES)
    }
    fn word(&mut self, at: u64) -> Option<u64> {
        if !at.is_multiple_of(8) || !self.span.holds(at, 8) {
            return None;
        }
        self.machine.kernel_word(at)
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
