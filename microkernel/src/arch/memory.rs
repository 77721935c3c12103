//! Memory while the system starts: it is handed out once and never taken back. What is left goes to the frame allocator.

use super::direct;
use super::layout::{BOOT_MAP_END, PAGE};
use core::sync::atomic::AtomicU64;
use kcore::boot::memory::{MEMORY_END, Range, RangeSet};
use sample_ring::Geometry;

/// The first MiB is left for what must lie there.
const LOW: u64 = 1 << 20;

/// There is not enough memory to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// RAM that there is, in bytes.
    pub ram: u64,
    /// Bytes that are needed at least.
    pub needed: u64,
}

impl core::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        const MIB: u64 = 1 << 20;
        /// What a PC's firmware keeps of the memory that it was given.
        const FIRMWARE: u64 = 512 << 10;
        let (ram, needed) = (
            self.ram.div_ceil(MIB),
            (self.needed + FIRMWARE).div_ceil(MIB),
        );
        write!(
            f,
            "not enough memory: {ram} MiB, and at least {needed} MiB are needed"
        )
    }
}

/// Free memory, and how much is not. The default has none.
#[derive(Debug, Default)]
pub struct BootMemory {
    free: RangeSet,
    ram: u64,
    promised: u64,
    end: u64,
}

impl BootMemory {
    /// From what is free of `ram` bytes of RAM. Until [`BootMemory::all_mapped`] only what `boot.s` has mapped is handed out.
    #[must_use]
    pub const fn new(free: RangeSet, ram: u64) -> Self {
        Self {
            free,
            ram,
            promised: 0,
            end: BOOT_MAP_END,
        }
    }

    /// Remembers that this many bytes are for programs.
    ///
    /// # Errors
    /// When they are not there.
    pub fn promise(&mut self, bytes: u64) -> Result<(), OutOfMemory> {
        self.promised = bytes;
        self.keep_promise()
    }

    /// Whether what was promised is still there.
    ///
    /// # Errors
    /// When it is not.
    pub fn keep_promise(&self) -> Result<(), OutOfMemory> {
        if self.promised <= self.free.bytes() {
            Ok(())
        } else {
            Err(self.lacking(0))
        }
    }

    fn lacking(&self, wanted: u64) -> OutOfMemory {
        OutOfMemory {
            ram: self.ram,
            needed: self.ram - self.free.bytes() + wanted + self.promised,
        }
    }

    /// All RAM is in the direct map now.
    pub const fn all_mapped(&mut self) {
        self.end = MEMORY_END;
    }

    /// Bytes that are free.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.free.bytes()
    }

    /// Gives memory back that the start no longer needs.
    pub fn give(&mut self, range: Range) {
        self.free.insert(range.inner_pages());
    }

    /// What is free, in whole pages, lowest first; nothing is handed out afterwards.
    pub fn into_free(self) -> RangeSet {
        let mut pages = RangeSet::new();
        for range in self.free.ranges() {
            pages.insert(range.inner_pages());
        }
        pages
    }

    fn take(&mut self, bytes: u64, align: u64) -> Result<u64, OutOfMemory> {
        let at = self.free.take(bytes, align, LOW, self.end);
        at.ok_or_else(|| self.lacking(bytes))
    }

    /// A zeroed page below 1 MiB, where a CPU can start; `None` if there is no RAM.
    pub fn low_page(&mut self) -> Option<u64> {
        let at = self.free.take(PAGE, PAGE, PAGE, LOW)?;
        // SAFETY: it was in the set of free RAM, so nothing lies in it.
        unsafe { direct::zero(at) };
        Some(at)
    }

    /// Zeroed frames in a row: the physical address of the first.
    ///
    /// # Errors
    /// When there is no such row.
    pub fn frames(&mut self, count: u64) -> Result<u64, OutOfMemory> {
        let start = self.take(count * PAGE, PAGE)?;
        for frame in 0..count {
            // SAFETY: it was in the set of free RAM, so nothing lies in it.
            unsafe { direct::zero(start + frame * PAGE) };
        }
        Ok(start)
    }

    /// Frames in a row for a number of sample rings: the physical address of the first.
    ///
    /// # Errors
    /// When there is no such row.
    pub fn rings(&mut self, count: u64, geometry: Geometry) -> Result<u64, OutOfMemory> {
        self.frames(count * geometry.bytes() as u64 / PAGE)
    }

    /// `count` values for the rest of the system's life, made one by one from their index.
    ///
    /// # Errors
    /// When they do not fit.
    pub fn slice<T>(
        &mut self,
        count: usize,
        mut make: impl FnMut(usize) -> T,
    ) -> Result<&'static mut [T], OutOfMemory> {
        let bytes = (count * size_of::<T>()) as u64;
        let at = self.take(bytes, align_of::<T>() as u64)?;
        let first = direct::pointer::<T>(at);
        for index in 0..count {
            // SAFETY: within the memory just taken.
            let slot = unsafe { first.add(index) };
            // SAFETY: aligned, as it was asked for, and mapped, being RAM below `end`; nothing else lies there.
            unsafe { slot.write(make(index)) };
        }
        // SAFETY: `count` values were written above, and the memory is never handed out again.
        Ok(unsafe { core::slice::from_raw_parts_mut(first, count) })
    }

    /// One value for the rest of the system's life.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn value<T>(&mut self, value: T) -> Result<&'static mut T, OutOfMemory> {
        let at = self.take(size_of::<T>() as u64, align_of::<T>() as u64)?;
        let place = direct::pointer::<T>(at);
        // SAFETY: aligned and mapped, as in `slice`; nothing else lies there.
        unsafe { place.write(value) };
        // SAFETY: it was just written, and the memory is never handed out again.
        Ok(unsafe { &mut *place })
    }
}

/// The words of ring `index` of those that [`BootMemory::rings`] gave.
#[must_use]
pub fn ring_words(rings: u64, index: usize, geometry: Geometry) -> &'static [AtomicU64] {
    let base = direct::pointer::<u64>(rings + (index * geometry.bytes()) as u64);
    // SAFETY: frames taken for rings are used for nothing else, for ever; programs map them read-only.
    unsafe { sample_ring::words(base, geometry) }
}
