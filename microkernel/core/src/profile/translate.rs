//! Reads a program's memory the way the MMU would, but by hand: the root comes from the thread and not from CR3, because the
//! walk may be about a client whose address space is not on this CPU.
//!
//! Part of the sampling path; its rules are in [`super`].

use crate::base::addr::{Frame, UserAddr};
use crate::hardware::{PhysMemory, Words};
use crate::mem::entry::Entry;
use crate::mem::paging::Tables;
use ipc::abi::layout::{PAGE_SIZE, USER_END};

/// Words of a page.
const WORDS: u64 = PAGE_SIZE / 8;

/// 4 KiB of a program's memory: a chain of frames mostly stays in one.
#[derive(Clone, Copy, Debug)]
pub struct Window<W> {
    start: u64,
    words: W,
}

impl<W: Words> Window<W> {
    /// The `N` words from an address upwards. `None` unless it is 8-byte aligned, and all of them are here.
    #[inline]
    pub(super) fn words<const N: usize>(self, at: u64) -> Option<[u64; N]> {
        // Misaligned, below or too far above: the rotated offset is too large in each case.
        let index = at.wrapping_sub(self.start).rotate_right(3);
        let last = WORDS - N as u64;
        (index <= last).then(|| core::array::from_fn(|n| self.words.word(index as usize + n)))
    }
}

/// A program's memory, for reading words.
pub(crate) struct UserMemory<'m, M: PhysMemory> {
    memory: &'m M,
    root: Frame,
    window: Option<Window<M::Words<'m>>>,
}

impl<'m, M: PhysMemory> UserMemory<'m, M> {
    /// The memory under a root table.
    #[inline]
    pub(crate) const fn new(memory: &'m M, root: Frame) -> Self {
        Self {
            memory,
            root,
            window: None,
        }
    }

    /// The part that was read last.
    #[inline]
    pub(super) const fn near(&self) -> Option<Window<M::Words<'m>>> {
        self.window
    }

    /// The word at an address. `None` unless the address is 8-byte aligned, in the lower half, mapped and user-accessible at
    /// every level, and backed by RAM.
    #[inline]
    pub(crate) fn read(&mut self, at: u64) -> Option<u64> {
        let here = self.window.and_then(|window| window.words(at));
        if let Some([word]) = here {
            return Some(word);
        }
        if !at.is_multiple_of(8) || at >= USER_END {
            return None;
        }
        let words = self.words(at)?;
        let start = at & !(PAGE_SIZE - 1);
        self.window = Some(Window { start, words });
        Some(words.word((at / 8) as usize))
    }

    /// The frame that an address of the lower half is in. Most pages are of 4 KiB.
    fn words(&self, at: u64) -> Option<M::Words<'m>> {
        let mut table = self.root;
        for shift in [39, 30, 21] {
            let entry = Entry(self.memory.words(table)?.word((at >> shift) as usize));
            match entry.user_table() {
                Some(next) => table = next,
                None => return self.words_of_large(at),
            }
        }
        let entry = Entry(self.memory.words(table)?.word((at >> 12) as usize));
        self.memory.words(entry.user_page()?)
    }

    /// The same in a page of 2 MiB or 1 GiB.
    #[cold]
    #[inline(never)]
    fn words_of_large(&self, at: u64) -> Option<M::Words<'m>> {
        let found = Tables::at(self.root).translate(self.memory, UserAddr(at))?;
        // Each frame is asked about: a mapping of RAM may end in a device.
        let frame = u32::try_from(found.at.0 / PAGE_SIZE).ok()?;
        self.memory.words(Frame(frame))
    }
}
