//! Reads a program's memory the way the MMU would, but by hand: the root comes from the thread and not from CR3, because the
//! walk may be about a client whose address space is not on this CPU.
//!
//! Part of the sampling path; its rules are in [`super`].

use crate::base::addr::{Frame, PhysAddr, UserAddr};
use crate::hardware::PhysMemory;
use crate::mem::paging::Tables;
use ipc::abi::layout::USER_END;

/// A page as it was found.
#[derive(Clone, Copy, Debug)]
struct Page {
    start: u64,
    bytes: u64,
    physical: u64,
}

/// A program's memory, for reading words.
#[derive(Debug)]
pub(crate) struct UserMemory<'m, M: PhysMemory> {
    memory: &'m M,
    root: Frame,
    /// The last page used: a chain of frames mostly stays in one.
    last: Option<Page>,
}

impl<'m, M: PhysMemory> UserMemory<'m, M> {
    /// The memory under a root table.
    pub(crate) const fn new(memory: &'m M, root: Frame) -> Self {
        Self {
            memory,
            root,
            last: None,
        }
    }

    /// The word at an address. `None` unless the address is 8-byte aligned, in the lower half, mapped and user-accessible at
    /// every level, and backed by RAM.
    pub(crate) fn read(&mut self, at: u64) -> Option<u64> {
        if !at.is_multiple_of(8) || at >= USER_END {
            return None;
        }
        let page = match self.last {
            Some(page) if at.wrapping_sub(page.start) < page.bytes => page,
            _ => self.translate(at)?,
        };
        self.last = Some(page);
        let word = PhysAddr(page.physical + (at - page.start));
        // In a large page each frame is asked about: a mapping of RAM may end in a device.
        self.is_ram(word).then(|| self.memory.read(word))
    }

    fn translate(&self, at: u64) -> Option<Page> {
        let found = Tables::at(self.root).translate(self.memory, UserAddr(at))?;
        let bytes = found.page_bytes;
        Some(Page {
            start: at & !(bytes - 1),
            bytes,
            physical: found.at.0 - at % bytes,
        })
    }

    fn is_ram(&self, at: PhysAddr) -> bool {
        u32::try_from(at.0 >> 12).is_ok_and(|frame| self.memory.is_ram(Frame(frame)))
    }
}
