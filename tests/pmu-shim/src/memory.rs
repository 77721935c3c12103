//! Physical memory, all of whose first 4 GiB the shim has at its own addresses; and registers in it.

use kcore::boot::PhysRead;

/// End of what can be reached.
const END: u64 = 1 << 32;

/// All of it.
#[derive(Clone, Copy, Debug)]
pub struct Physical;

impl PhysRead for Physical {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        let bytes = into.len();
        if at == 0 || at.saturating_add(bytes as u64) > END {
            return false;
        }
        // SAFETY: the map of `start.s` has all below 4 GiB, and what is read is no device: it is an address that firmware or
        // loader gave for a table. Whatever bytes are there are bytes.
        unsafe { core::ptr::copy_nonoverlapping(at as *const u8, into.as_mut_ptr(), bytes) };
        true
    }
}

/// The bytes of the loader's module.
///
/// # Safety
/// It must lie in RAM below 4 GiB, and nobody may write to it from now on.
pub unsafe fn module<'a>(start: u64, bytes: u64) -> &'a [u8] {
    // SAFETY: mapped, and the caller vouches for the rest.
    unsafe { core::slice::from_raw_parts(start as *const u8, bytes as usize) }
}

/// Writes to memory that is not the shim's own.
///
/// # Safety
/// It must be RAM below 4 GiB that no Rust value lies in.
pub unsafe fn write(at: u64, bytes: &[u8]) {
    // SAFETY: mapped, and the caller vouches for the rest.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
}

/// Writes zeros.
///
/// # Safety
/// As for [`write()`].
pub unsafe fn clear(at: u64, bytes: u64) {
    // SAFETY: mapped, and the caller vouches for the rest.
    unsafe { core::ptr::write_bytes(at as *mut u8, 0, bytes as usize) };
}

/// Registers of a device, 32 bits each.
#[derive(Clone, Copy, Debug)]
pub struct Device(u64);

impl Device {
    /// # Safety
    /// A device must have its registers there, below 4 GiB, and what they do must not touch the shim's memory.
    pub const unsafe fn new(base: u64) -> Self {
        Self(base)
    }

    pub fn read(self, offset: u32) -> u32 {
        // SAFETY: `new` was told of a device.
        unsafe { ((self.0 + u64::from(offset)) as *const u32).read_volatile() }
    }

    pub fn write(self, offset: u32, value: u32) {
        // SAFETY: as above.
        unsafe { ((self.0 + u64::from(offset)) as *mut u32).write_volatile(value) };
    }
}
