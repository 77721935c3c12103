//! The kernel's page tables: made once, at the start, and the same for every CPU. All tables of the upper half exist
//! afterwards, so that a process's root is complete with a copy of the root entries.

use super::direct;
use super::image::{Image, physical};
use super::layout::{DIRECT_MAP, PAGE};
use super::memory::{BootMemory, OutOfMemory};
use kcore::boot::memory::{Range, RangeSet};
use x86_64::structures::paging::PageTableFlags as Flags;

/// Constants: read only.
pub const READ: Flags = Flags::PRESENT.union(Flags::NO_EXECUTE).union(Flags::GLOBAL);
/// Variables.
pub const READ_WRITE: Flags = READ.union(Flags::WRITABLE);
/// Code.
pub const EXECUTE: Flags = Flags::PRESENT.union(Flags::GLOBAL);
/// Registers of devices: not cached.
pub const DEVICE: Flags = READ_WRITE
    .union(Flags::NO_CACHE)
    .union(Flags::WRITE_THROUGH);

const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// Makes mappings below one root table.
#[derive(Clone, Copy, Debug)]
pub struct Mapper {
    root: u64,
    huge: bool,
}

impl Mapper {
    /// With a new, empty root; `huge` if there are 1 GiB pages.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new(memory: &mut BootMemory, huge: bool) -> Result<Self, OutOfMemory> {
        Ok(Self {
            root: memory.frames(1)?,
            huge,
        })
    }

    /// Physical address of the root table.
    #[must_use]
    pub const fn root(&self) -> u64 {
        self.root
    }

    /// Maps the image, all RAM but the image's code and constants, and the module.
    ///
    /// # Errors
    /// When there is no memory for the tables.
    pub fn kernel(
        &self,
        memory: &mut BootMemory,
        image: &Image,
        ram: &RangeSet,
        module: Option<Range>,
    ) -> Result<(), OutOfMemory> {
        for (part, flags) in [
            (image.text, EXECUTE),
            (image.rodata, READ),
            (image.data, READ_WRITE),
        ] {
            self.map(memory, part.start, physical(part), flags)?;
        }
        for &range in ram.ranges() {
            self.map(memory, DIRECT_MAP + range.start, range, READ_WRITE)?;
        }
        if let Some(module) = module {
            self.map(memory, DIRECT_MAP + module.start, module, READ)?;
        }
        Ok(())
    }

    /// Maps a physical range at a virtual address, with the largest pages that fit exactly.
    ///
    /// # Errors
    /// When there is no memory for the tables.
    pub fn map(
        &self,
        memory: &mut BootMemory,
        to: u64,
        from: Range,
        flags: Flags,
    ) -> Result<(), OutOfMemory> {
        let mut at = from.start;
        while at < from.end {
            let virt = to + (at - from.start);
            let fits = |bytes: u64| (virt | at).is_multiple_of(bytes) && from.end - at >= bytes;
            let level = match () {
                () if self.huge && fits(PAGE << 18) => 2,
                () if fits(PAGE << 9) => 1,
                () => 0,
            };
            let large = if level > 0 {
                Flags::HUGE_PAGE
            } else {
                Flags::empty()
            };
            let entry = self.entry(memory, virt, level)?;
            // SAFETY: `entry` is an entry of a table below our root.
            unsafe { direct::write(entry, at | (flags | large).bits()) };
            at += PAGE << (9 * level);
        }
        Ok(())
    }

    /// Makes the tables for a page without mapping it, and gives the physical address of its entry.
    ///
    /// # Errors
    /// When there is no memory for the tables.
    pub fn entry(
        &self,
        memory: &mut BootMemory,
        virt: u64,
        level: u32,
    ) -> Result<u64, OutOfMemory> {
        let mut table = self.root;
        for above in (level + 1..=3).rev() {
            let entry = table + index(virt, above) * 8;
            // SAFETY: the table is the root or one that an entry of ours points to; all lie in mapped RAM.
            let mut value = unsafe { direct::read(entry) };
            if value == 0 {
                value = memory.frames(1)? | (Flags::PRESENT | Flags::WRITABLE).bits();
                // SAFETY: as above; tables hold no Rust object.
                unsafe { direct::write(entry, value) };
            }
            table = value & ADDRESS;
        }
        Ok(table + index(virt, level) * 8)
    }
}

const fn index(virt: u64, level: u32) -> u64 {
    virt >> (12 + 9 * level) & 511
}
