//! Memory while the system starts: it is handed out once and never taken back. What is left goes to the frame allocator.

use super::direct;
use super::layout::{BOOT_MAP_END, PAGE};
use core::sync::atomic::AtomicU64;
use ipc::abi::layout::PHYSICAL_END;
use kcore::boot::memory::{Range, RangeSet};
use sample_ring::Geometry;

/// Where a CPU can start: below the first MiB.
const LOW: u64 = 1 << 20;

/// No row of so many bytes is free. A machine with too little memory does not come to this: it is told before how much it needs
/// (`boot/plan.rs`), and what is taken until then fits below 1 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes wanted.
    pub bytes: u64,
}

impl core::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let bytes = self.bytes;
        write!(f, "not enough memory: no {bytes} bytes in a row are free")
    }
}

/// Free memory. The default has none.
#[derive(Debug, Default)]
pub struct BootMemory {
    free: RangeSet,
    low_page: Option<u64>,
    end: u64,
}

impl BootMemory {
    /// From what is free. Until [`BootMemory::all_mapped`] only what `boot.s` has mapped is handed out.
    #[must_use]
    pub fn new(mut free: RangeSet) -> Self {
        let low_page = free.take(PAGE, PAGE, PAGE, LOW);
        Self {
            free,
            low_page,
            end: BOOT_MAP_END,
        }
    }

    /// All RAM is in the direct map now.
    pub const fn all_mapped(&mut self) {
        self.end = PHYSICAL_END;
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
        let at = self.free.take(bytes, align, PAGE, self.end);
        at.ok_or(OutOfMemory { bytes })
    }

    /// A zeroed page below 1 MiB, where a CPU can start, once; `None` if there is no RAM.
    pub fn low_page(&mut self) -> Option<u64> {
        let at = self.low_page.take()?;
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
