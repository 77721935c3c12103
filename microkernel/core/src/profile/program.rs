//! Where a thread's program is, and its frames from there outwards.
//!
//! Part of the sampling path; its rules are in [`super`].

use super::interrupted::{Context, Interrupted};
use super::layout::KernelMap;
use super::stack::UserStack;
use super::threads::ThreadView;
use super::translate::Window;
use super::walk::{End, Walk, follow};
use crate::base::addr::Frame;
use crate::base::regs::Reg;
use crate::hardware::PhysWords;
use core::sync::atomic::Ordering;
use ipc::abi::layout::USER_END;
use sample_ring::Slot;

/// The registers that a walk starts from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub rip: u64,
    pub rsp: u64,
    pub rbp: u64,
}

impl Program {
    /// Those of the thread for which the kernel was interrupted: where the stub has them that was interrupted, else where the stubs
    /// save them.
    #[inline]
    pub(super) fn of(thread: &ThreadView<'_>, at: &Interrupted, map: &KernelMap) -> Self {
        let saved = Self::saved(thread);
        if map.syscall.contains(at.rip) {
            let switched = at.rip >= map.syscall_switched;
            Self {
                rip: at.rcx,
                rsp: if switched { at.scratch } else { at.rsp },
                rbp: at.rbp,
            }
        } else if map.interrupts.contains(at.rip) {
            Self {
                rbp: at.rbp,
                ..saved
            }
        } else {
            saved
        }
    }

    /// Those that were interrupted in the program itself.
    #[inline]
    pub(super) fn interrupted(at: impl Context) -> Self {
        Self {
            rip: at.rip(),
            rsp: at.rsp(),
            rbp: at.rbp(),
        }
    }

    /// From where the stubs saved them.
    #[inline]
    pub(super) fn saved(thread: &ThreadView<'_>) -> Self {
        Self {
            rip: thread.regs.get(Reg::Rip),
            rsp: thread.regs.get(Reg::Rsp),
            rbp: thread.regs.get(Reg::Rbp),
        }
    }

    /// Puts RIP and its callers into the slot, at most `limit` of them.
    pub(super) fn frames<M: PhysWords>(
        self,
        stack: &mut UserStack<'_, M>,
        limit: usize,
        slot: &mut Slot<'_>,
    ) -> End {
        if self.rip >= USER_END {
            return End::Cut;
        }
        let Some((first, places)) = slot.free(limit).split_first() else {
            return End::Truncated;
        };
        first.store(self.rip, Ordering::Relaxed);
        let (taken, end) = follow(stack, self.rsp, self.rbp, places);
        slot.fill(1 + taken);
        end
    }

    /// Puts all of them into the slot, if nearly all is as usual: the frames are in one page, and there is room.
    // Called once, for clients: inlined, so that the slot need not be in memory.
    #[inline(always)]
    pub(super) fn usual_frames<M: PhysWords>(
        self,
        memory: &M,
        root: Frame,
        slot: &mut Slot<'_>,
    ) -> Option<()> {
        if self.rip >= USER_END {
            return None;
        }
        let page = Window::of(memory, root, self.rbp)?;
        let (first, places) = slot.free(usize::MAX).split_first()?;
        first.store(self.rip, Ordering::Relaxed);
        let taken = page.follow(Walk::from(self.rsp, self.rbp), places).ok()?;
        slot.fill(1 + taken);
        Some(())
    }
}
