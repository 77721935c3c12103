//! The thread that a machine which stands still is sampled in.

use std::sync::atomic::{AtomicU32, AtomicU64};

use kcore::base::addr::Frame;
use kcore::base::regs::{Reg, SavedRegs};
use kcore::profile::{Names, ThreadView, Threads};

use super::super::probe::Ram;

/// A thread that a sample is of: its process, and where its program is while it is in the kernel.
#[derive(Debug)]
pub struct Thread {
    ids: AtomicU64,
    image: AtomicU32,
    root: Frame,
    regs: SavedRegs,
}

impl Thread {
    /// The one thread of a process, which has these tables, and whose program is there.
    #[must_use]
    pub const fn new(pid: u32, root: Frame, regs: SavedRegs) -> Self {
        Self {
            ids: AtomicU64::new(pid as u64 | (pid as u64) << 32),
            image: AtomicU32::new(0),
            root,
            regs,
        }
    }

    /// The thread whose registers end there, in the kernel's half of these tables.
    #[must_use]
    pub fn read(ram: &Ram, root: u64, pid: u32, end: u64) -> Option<Self> {
        let regs = SavedRegs::new();
        let start = end - size_of::<SavedRegs>() as u64;
        for reg in [Reg::Rip, Reg::Rsp, Reg::Rbp] {
            regs.set(reg, ram.word_at(root, start + reg as u64 * 8)?);
        }
        Some(Self::new(pid, Frame((root >> 12) as u32), regs))
    }

    /// Where its program goes on, once its registers are saved.
    #[must_use]
    pub fn rip(&self) -> u64 {
        self.regs.get(Reg::Rip)
    }

    /// Where its saved registers end, by which the kernel knows who entered it.
    #[must_use]
    pub fn entered(&self) -> u64 {
        self.regs.end()
    }
}

/// The threads of a machine of which one runs, or none. Chains that go on in a client are another test's matter.
#[derive(Clone, Copy)]
pub struct Current<'t>(pub Option<&'t Thread>);

impl<'t> Threads for Current<'t> {
    type Thread = &'t Thread;

    fn current(&self) -> Option<&'t Thread> {
        self.0
    }
    fn names(&self, Thread { ids, image, .. }: &'t Thread) -> Names<'_> {
        Names { ids, image }
    }
    fn view(&self, thread: &'t Thread) -> Option<ThreadView<'_>> {
        Some(ThreadView {
            names: self.names(thread),
            root: thread.root,
            regs: &thread.regs,
        })
    }
    fn served(&self, _: &'t Thread) -> Option<(&'t Thread, u64)> {
        None
    }
    fn sequence(&self, _: &'t Thread) -> u64 {
        0
    }
}
