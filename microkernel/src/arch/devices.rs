//! Registers of devices in memory, and a look at any physical memory while the machine is being found out.

use super::direct;
use super::layout::{DEVICES, PAGE, WINDOW};
use super::memory::{BootMemory, OutOfMemory};
use super::paging::{DEVICE, Mapper, READ};
use core::sync::atomic::{AtomicU64, Ordering};
use ipc::abi::layout::PHYSICAL_END;
use kcore::boot::PhysRead;
use kcore::boot::memory::Range;
use x86_64::VirtAddr;
use x86_64::instructions::tlb;

/// A device's registers, in so many bytes, mapped uncached for ever.
#[derive(Clone, Copy, Debug)]
pub struct Registers<const BYTES: u64> {
    base: u64,
}

static NEXT: AtomicU64 = AtomicU64::new(DEVICES);

impl<const BYTES: u64> Registers<BYTES> {
    /// Maps the registers at a physical address. The firmware said that they are there.
    ///
    /// # Errors
    /// When there is no memory for the tables.
    pub fn map(memory: &mut BootMemory, mapper: &Mapper, at: u64) -> Result<Self, OutOfMemory> {
        let pages = Range::sized(at, BYTES).outer_pages();
        let base = NEXT.fetch_add(pages.bytes(), Ordering::Relaxed);
        mapper.map(memory, base, pages, DEVICE)?;
        Ok(Self {
            base: base + (at - pages.start),
        })
    }

    const fn pointer<T>(self, offset: u64) -> *mut T {
        assert!(
            offset <= BYTES - size_of::<T>() as u64,
            "a register of the device"
        );
        (self.base + offset) as *mut T
    }

    /// Reads a 32-bit register.
    #[must_use]
    pub fn read(self, offset: u64) -> u32 {
        // SAFETY: within the device's registers, mapped for ever; they are no Rust object.
        unsafe { self.pointer::<u32>(offset).read_volatile() }
    }

    /// Writes a 32-bit register.
    pub fn write(self, offset: u64, value: u32) {
        // SAFETY: as for `read`. No register written here makes the device write to memory.
        unsafe { self.pointer::<u32>(offset).write_volatile(value) };
    }
}

/// A page of the address space through which any physical page is read, for firmware tables wherever they are.
#[derive(Debug)]
pub struct Window {
    entry: u64,
}

impl Window {
    /// Makes the tables for it.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn new(memory: &mut BootMemory, mapper: &Mapper) -> Result<Self, OutOfMemory> {
        Ok(Self {
            entry: mapper.entry(memory, WINDOW, 0)?,
        })
    }

    fn look(&self, at: u64, into: &mut [u8]) {
        let page = at & !(PAGE - 1);
        // SAFETY: `entry` is the window's page table entry, which is ours alone.
        unsafe { direct::write(self.entry, page | READ.bits()) };
        tlb::flush(VirtAddr::new(WINDOW));
        let from = (WINDOW + at - page) as *const u8;
        for (offset, byte) in into.iter_mut().enumerate() {
            // SAFETY: the caller keeps within the page, which was mapped just now. Volatile, because the memory may be
            // anything.
            *byte = unsafe { from.wrapping_add(offset).read_volatile() };
        }
        // SAFETY: as above.
        unsafe { direct::write(self.entry, 0) };
        tlb::flush(VirtAddr::new(WINDOW));
    }
}

impl PhysRead for Window {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        if Range::sized(at, into.len() as u64).end > PHYSICAL_END {
            return false;
        }
        let (mut at, mut rest) = (at, into);
        while !rest.is_empty() {
            let room = (PAGE - at % PAGE) as usize;
            let (part, after) = rest.split_at_mut(room.min(rest.len()));
            self.look(at, part);
            at += part.len() as u64;
            rest = after;
        }
        true
    }
}

/// What `boot.s` has mapped, before there is a window.
#[derive(Debug)]
pub struct BootMap;

impl PhysRead for BootMap {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        if Range::sized(at, into.len() as u64).end > super::layout::BOOT_MAP_END {
            return false;
        }
        for (offset, byte) in into.iter_mut().enumerate() {
            // SAFETY: the first 4 GiB are in the direct map while the start lasts.
            *byte = unsafe {
                direct::pointer::<u8>(at)
                    .wrapping_add(offset)
                    .read_volatile()
            };
        }
        true
    }
}
