//! Reads a program's memory the way the MMU would, but by hand: the root comes from the thread and not from CR3, because the
//! walk may be about a client whose address space is not on this CPU.
//!
//! Part of the sampling path; its rules are in [`super`].

use crate::base::addr::{Frame, PhysAddr, UserAddr};
use crate::hardware::{PhysMemory, Words};
use crate::mem::paging::Tables;
use ipc::abi::layout::{PAGE_SIZE, USER_END};

/// A page as it was found.
#[derive(Clone, Copy, Debug)]
struct Page {
    start: u64,
    bytes: u64,
    physical: u64,
}

/// The part of a page, of 4 KiB, that was used last: a chain of frames mostly stays in one.
#[derive(Clone, Copy, Debug)]
struct Window<W> {
    start: u64,
    words: W,
}

/// A program's memory, for reading words.
pub(crate) struct UserMemory<'m, M: PhysMemory> {
    memory: &'m M,
    root: Frame,
    page: Option<Page>,
    window: Option<Window<M::Words<'m>>>,
}

impl<'m, M: PhysMemory> UserMemory<'m, M> {
    /// The memory under a root table.
    pub(crate) const fn new(memory: &'m M, root: Frame) -> Self {
        Self {
            memory,
            root,
            page: None,
            window: None,
        }
    }

    /// The `N` words from an address upwards. `None` unless it is 8-byte aligned, and all of them are in the part of a page that was used
    /// last.
    #[inline]
    pub(crate) fn near<const N: usize>(&self, at: u64) -> Option<[u64; N]> {
        let Window { start, words } = self.window?;
        // Misaligned, below or too far above: the rotated offset is too large in each case.
        let index = at.wrapping_sub(start).rotate_right(3);
        let last = PAGE_SIZE / 8 - N as u64;
        (index <= last).then(|| core::array::from_fn(|n| words.word(index as usize + n)))
    }

    /// The word at an address. `None` unless the address is 8-byte aligned, in the lower half, mapped and user-accessible at
    /// every level, and backed by RAM.
    pub(crate) fn read(&mut self, at: u64) -> Option<u64> {
        if let Some([word]) = self.near(at) {
            return Some(word);
        }
        if !at.is_multiple_of(8) || at >= USER_END {
            return None;
        }
        let page = match self.page {
            Some(page) if at.wrapping_sub(page.start) < page.bytes => page,
            _ => self.translate(at)?,
        };
        self.page = Some(page);
        let start = at & !(PAGE_SIZE - 1);
        let frame = PhysAddr(page.physical + (start - page.start)).0 / PAGE_SIZE;
        // In a large page each frame is asked about: a mapping of RAM may end in a device.
        let words = self.memory.words(Frame(u32::try_from(frame).ok()?))?;
        self.window = Some(Window { start, words });
        Some(words.word((at - start) as usize / 8))
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
}
