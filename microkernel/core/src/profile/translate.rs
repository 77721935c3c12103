//! Reads a program's memory the way the MMU would, but by hand: the root comes from the thread and not from CR3, because the
//! walk may be about a client whose address space is not on this CPU.
//!
//! Part of the sampling path; its rules are in [`super`]. Page table format: Intel SDM volume 3, section 5.5 (4-level
//! paging), tables 5-15 to 5-20; AMD64 volume 2, section 5.3.

use crate::base::addr::{Frame, PhysAddr};
use crate::hardware::PhysMemory;
use ipc::abi::layout::USER_END;

/// Entry bits: present, user-accessible, and (in the two middle levels) a page instead of a table.
const PRESENT: u64 = 1 << 0;
const USER: u64 = 1 << 2;
const LARGE: u64 = 1 << 7;
/// Physical address bits of an entry, 51 to 12.
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// Shift of the index of each level, from the root: 512 GiB, 1 GiB, 2 MiB and 4 KiB an entry.
const LEVELS: [u32; 4] = [39, 30, 21, 12];

/// A page as it was found.
#[derive(Clone, Copy, Debug)]
struct Page {
    start: u64,
    bytes: u64,
    physical: u64,
}

/// A program's memory, for reading words.
#[derive(Debug)]
pub(crate) struct UserMemory<'m, M: PhysMemory + ?Sized> {
    memory: &'m M,
    root: Frame,
    /// The last page used: a chain of frames mostly stays in one.
    last: Option<Page>,
}

impl<'m, M: PhysMemory + ?Sized> UserMemory<'m, M> {
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
        let mut table = self.root.start();
        for shift in LEVELS {
            let slot = table.offset((at >> shift & 0x1ff) * 8);
            let entry = self.is_ram(slot).then(|| self.memory.read(slot))?;
            if entry & (PRESENT | USER) != PRESENT | USER {
                return None;
            }
            let large = entry & LARGE != 0;
            let bytes = 1 << shift;
            match shift {
                12 => return Some(Self::page(at, entry, bytes)),
                21 | 30 if large => return Some(Self::page(at, entry, bytes)),
                // Bit 7 is reserved in a root entry: the MMU would fault.
                39 if large => return None,
                _ => table = PhysAddr(entry & ADDRESS),
            }
        }
        None
    }

    const fn page(at: u64, entry: u64, bytes: u64) -> Page {
        Page {
            start: at & !(bytes - 1),
            bytes,
            // A large page's lower address bits hold PAT and reserved bits.
            physical: entry & ADDRESS & !(bytes - 1),
        }
    }

    fn is_ram(&self, at: PhysAddr) -> bool {
        u32::try_from(at.0 >> 12).is_ok_and(|frame| self.memory.is_ram(Frame(frame)))
    }
}
