//! Page tables of programs: 4 levels, 4 KiB pages, reached through the direct map (Intel SDM volume 3A, "4-Level Paging
//! and 5-Level Paging").
//!
//! The upper half of every root is the kernel's, copied when the root is made; its tables live as long as the kernel
//! does. The lower half is the program's, and nothing here writes above it.
//!
//! Who changes a space holds its lock; the hardware, the sampling interrupt and the kernel's own reading of user memory walk the
//! tables at any time without it. So every change is one store of one entry, a table is zeroed before an entry leads to it, and
//! a table or page that an entry led to is retired, not freed. Stores become visible in order (SDM volume 3A, "Memory
//! Ordering"), and [`PhysMemory`] keeps them so.
//!
//! Translations that a CPU has cached are not this module's: who unmaps, protects or prunes sees to the flush. Until then a CPU
//! may also walk through a table that was pruned, by its paging-structure caches, and miss what was mapped since: a page
//! fault is the program's only if [`Tables::fault_is_stale`] does not say otherwise.

use super::entry::Entry;
use super::page::{Access, Kind, Page};
use super::supply::Supply;
use crate::base::addr::{Frame, PhysAddr, UserAddr};
use crate::hardware::{PhysMemory, PhysWords, Words};
use ipc::abi::Error;
use ipc::abi::exit::{FAULT_FETCH, FAULT_PRESENT, FAULT_USER, FAULT_WRITE};
use ipc::abi::layout::USER_END;

/// Entries in a table.
const ENTRIES: u64 = 512;
/// Root entries that are the program's; the others are the kernel's.
const USER_ENTRIES: u64 = 256;
/// Where the lower half ends.
pub const HALF_END: u64 = 1 << 47;

/// Bytes that one entry of a table of this level, 1 to 4, covers.
const fn span(level: u32) -> u64 {
    1 << (12 + 9 * (level - 1))
}

/// Where a table's entry for an address is.
const fn slot(table: Frame, address: u64, level: u32) -> PhysAddr {
    table.start().offset(address / span(level) % ENTRIES * 8)
}

/// What is found at a user address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    /// The byte itself. It is RAM only if [`PhysWords::is_ram`] says so.
    pub at: PhysAddr,
    /// Whether the program may write there.
    pub writable: bool,
    /// Whether the program may execute there.
    pub executable: bool,
    /// What lies there.
    pub kind: Kind,
    /// Bytes of the page that it is in.
    pub page_bytes: u64,
}

/// How far a teardown has come: the address that it looks at next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Teardown(u64);

/// The page tables of one address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tables {
    root: Frame,
}

impl Tables {
    /// A space without user pages, with the kernel's half as [`kernel_entry`] has it, entries 256 to 511. `root` becomes its root
    /// table and stays the caller's to free.
    ///
    /// [`kernel_entry`]: crate::hardware::Hardware::kernel_entry
    pub fn new(memory: &impl PhysMemory, root: Frame, kernel_entry: impl Fn(usize) -> u64) -> Self {
        memory.zero(root);
        for index in USER_ENTRIES..ENTRIES {
            memory.write(root.start().offset(index * 8), kernel_entry(index as usize));
        }
        Self { root }
    }

    /// The space with this root table, which [`Tables::new`] made.
    #[must_use]
    pub const fn at(root: Frame) -> Self {
        Self { root }
    }

    /// Its root table.
    #[must_use]
    pub const fn root(self) -> Frame {
        self.root
    }

    /// Maps a page, and takes from `supply` the tables that it needs. On error nothing is mapped; tables that were made stay, for
    /// the next try or the teardown.
    ///
    /// # Errors
    /// `Overlap` if something is mapped there, `BadArgument` for an executable device page, and what the supply says.
    pub fn map(
        self,
        memory: &impl PhysMemory,
        page: Page,
        frame: Frame,
        access: Access,
        kind: Kind,
        supply: &mut impl Supply,
    ) -> Result<(), Error> {
        if kind == Kind::Device && access == Access::Execute {
            return Err(Error::BadArgument);
        }
        let mut table = self.root;
        for level in [4, 3, 2] {
            let at = slot(table, page.address(), level);
            let entry = Entry(memory.read(at));
            table = match entry.next_table() {
                Some(next) => next,
                None if entry.is_present() => return Err(Error::Overlap),
                None => {
                    let next = supply.take()?;
                    memory.zero(next);
                    memory.write(at, Entry::table(next).0);
                    next
                }
            };
        }
        let at = slot(table, page.address(), 1);
        if Entry(memory.read(at)).is_present() {
            return Err(Error::Overlap);
        }
        memory.write(at, Entry::page(frame, access, kind).0);
        Ok(())
    }

    /// Unmaps a page and says which frame was there; `None` if none was. The tables stay: see [`Tables::prune`].
    pub fn unmap(self, memory: &impl PhysMemory, page: Page) -> Option<Frame> {
        let (at, entry) = self.leaf(memory, page)?;
        memory.write(at, Entry::NONE.0);
        Some(entry.start(span(1)).frame())
    }

    /// Changes what the program may do with a page. The flush is due whether that is less or more than before: a CPU may go by
    /// the old entry.
    ///
    /// # Errors
    /// `NotMapped` if nothing is there, `BadArgument` for an executable device page.
    pub fn protect(
        self,
        memory: &impl PhysMemory,
        page: Page,
        access: Access,
    ) -> Result<(), Error> {
        let (at, entry) = self.leaf(memory, page).ok_or(Error::NotMapped)?;
        if entry.kind() == Kind::Device && access == Access::Execute {
            return Err(Error::BadArgument);
        }
        memory.write(at, entry.with_access(access).0);
        Ok(())
    }

    /// Takes out those tables on the way to a page in which nothing is left. Reads up to three tables: so it is for the last page
    /// of what is unmapped, and for the last of each 2 MiB in it ([`Tables::ends_table`]).
    pub fn prune(self, memory: &impl PhysMemory, page: Page, supply: &mut impl Supply) {
        // Tables of level 3, 2 and 1, each with the place of the entry that leads to it.
        let mut path = [None; 3];
        let mut table = self.root;
        for (step, level) in path.iter_mut().zip([4, 3, 2]) {
            let at = slot(table, page.address(), level);
            let Some(next) = Entry(memory.read(at)).next_table() else {
                break;
            };
            *step = Some((at, next));
            table = next;
        }
        for (at, table) in path.into_iter().rev().flatten() {
            let in_use =
                (0..ENTRIES).any(|index| memory.read(table.start().offset(index * 8)) != 0);
            if in_use {
                return;
            }
            memory.write(at, Entry::NONE.0);
            supply.give(table);
        }
    }

    /// Whether the next page has another table, so that this is the time to prune.
    #[must_use]
    pub const fn ends_table(page: Page) -> bool {
        (page.address() + span(1)).is_multiple_of(span(2))
    }

    /// What a program finds at an address, as the hardware would see it: through user entries only, with the least access
    /// on the way, in pages of 4 KiB, 2 MiB or 1 GiB. Four loads at most, from RAM whatever the tables say; takes no lock and fits
    /// the sampling path.
    #[must_use]
    pub fn translate(self, memory: &impl PhysWords, address: UserAddr) -> Option<Translation> {
        if address.0 >= HALF_END {
            return None;
        }
        let (mut table, mut writable, mut executable) = (self.root, true, true);
        for (level, shift) in [(4, 39), (3, 30), (2, 21), (1, 12)] {
            let index = address.0 >> shift & (ENTRIES - 1);
            let entry = Entry(memory.words(table)?.word(index as usize));
            if !entry.is_present() || !entry.is_user() {
                return None;
            }
            writable &= entry.is_writable();
            executable &= entry.is_executable();
            if level == 1 || (level < 4 && entry.is_large()) {
                let bytes = 1 << shift;
                return Some(Translation {
                    at: entry.start(bytes).offset(address.0 & (bytes - 1)),
                    writable,
                    executable,
                    kind: entry.kind(),
                    page_bytes: bytes,
                });
            }
            table = entry.next_table()?;
        }
        None
    }

    /// Whether an access that faulted would not fault now, so that the CPU went by something it had cached: it flushes and the
    /// program tries again. `error` is the error code of the page fault (Intel SDM volume 3A, "Page-Fault Exceptions").
    #[must_use]
    pub fn fault_is_stale(self, memory: &impl PhysWords, address: UserAddr, error: u64) -> bool {
        // Causes other than absence and access, such as a reserved bit, are not the caches' doing. Nor is an access that the CPU
        // makes for itself, such as to a descriptor table: it sees the kernel's pages, and `translate` does not.
        let cached = FAULT_PRESENT | FAULT_WRITE | FAULT_USER | FAULT_FETCH;
        if error & !cached != 0 || error & FAULT_USER == 0 {
            return false;
        }
        self.translate(memory, address).is_some_and(|found| {
            (found.writable || error & FAULT_WRITE == 0)
                && (found.executable || error & FAULT_FETCH == 0)
        })
    }

    /// Takes out the program's tables, up to `budget` of their entries in this step, and says whether that was the last. The pages
    /// themselves belong to memory objects and are left alone; the root stays the caller's. Nothing may be mapped
    /// once this has begun.
    pub fn teardown(
        self,
        memory: &impl PhysMemory,
        progress: &mut Teardown,
        budget: u32,
        supply: &mut impl Supply,
    ) -> bool {
        for _ in 0..budget {
            let address = progress.0;
            if address >= USER_END {
                return true;
            }
            // Down as far as there are tables: `level` is that of the entry which leads no further, or to a table of pages.
            let (mut level, mut table) = (4, self.root);
            let mut path = [None; 3];
            while level > 1 {
                let at = slot(table, address, level);
                let Some(next) = Entry(memory.read(at)).next_table() else {
                    break;
                };
                path[level as usize - 2] = Some((at, next));
                table = next;
                level -= 1;
            }
            progress.0 = (address / span(level.max(2)) + 1) * span(level.max(2));
            // Out go the table of pages, and each higher table whose last entry this was.
            for (step, level) in path.into_iter().zip(2..) {
                if let Some((at, table)) = step
                    && progress.0.is_multiple_of(span(level))
                {
                    memory.write(at, Entry::NONE.0);
                    supply.give(table);
                }
            }
        }
        progress.0 >= USER_END
    }

    /// The entry that maps a page, and its place.
    fn leaf(self, memory: &impl PhysMemory, page: Page) -> Option<(PhysAddr, Entry)> {
        let mut table = self.root;
        for level in [4, 3, 2] {
            table = Entry(memory.read(slot(table, page.address(), level))).next_table()?;
        }
        let at = slot(table, page.address(), 1);
        let entry = Entry(memory.read(at));
        entry.is_present().then_some((at, entry))
    }
}

#[cfg(test)]
mod tests;
