//! A device's registers: a memory object mapped uncached, read and written as wide as the device wants it.
//!
//! An access has the width that is asked for, happens once, and stays in order with the others: it is volatile. What the
//! device answers may be anything, and an access that does not fit is refused and never made.

use ipc::abi::{Error, Handle};

use crate::{Mapping, syscall};

/// A width of registers: `u8`, `u16`, `u32`.
pub trait Width: sealed::Sealed + Copy {}

impl Width for u8 {}
impl Width for u16 {}
impl Width for u32 {}

mod sealed {
    /// Any pattern of bits is a value.
    pub trait Sealed {}
    impl Sealed for u8 {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
}

/// Registers of a device, in this program's address space. Unmapped when dropped.
#[derive(Debug)]
pub struct Registers(Mapping);

impl Registers {
    /// Maps a whole memory object.
    ///
    /// # Errors
    /// See the calls `memory_info` and `map`.
    pub fn map(memory: Handle) -> Result<Self, Error> {
        let (pages, _) = syscall::memory_info(memory)?;
        Mapping::new(memory, 0, pages, true).map(Self)
    }

    /// Bytes of registers.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none, which no mapping has.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a register; `None` if it is not all in the mapping, or not on a multiple of its size.
    #[must_use]
    pub fn read<T: Width>(&self, offset: usize) -> Option<T> {
        let place = self.place::<T>(offset)?;
        // SAFETY: the place is aligned, in pages that stay mapped for reading while `self` lives, and to which no reference
        // exists; any bits are a value of a `Width`.
        Some(unsafe { place.read_volatile() })
    }

    /// Writes a register; `None`, and nothing written, if it is not all in the mapping, or not on a multiple of its size.
    pub fn write<T: Width>(&self, offset: usize, value: T) -> Option<()> {
        let place = self.place::<T>(offset)?;
        // SAFETY: as in `read`, and the pages are mapped for writing.
        unsafe { place.write_volatile(value) };
        Some(())
    }

    fn place<T: Width>(&self, offset: usize) -> Option<*mut T> {
        let end = offset.checked_add(size_of::<T>())?;
        let fits = end <= self.len() && offset.is_multiple_of(size_of::<T>());
        fits.then_some((self.0.address() + offset as u64) as *mut T)
    }
}
