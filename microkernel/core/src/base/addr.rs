//! Addresses and times as types, so that a number says what it is.

/// A physical address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PhysAddr(pub u64);

impl PhysAddr {
    /// The frame this address lies in.
    #[must_use]
    pub const fn frame(self) -> Frame {
        Frame((self.0 >> 12) as u32)
    }
    /// This address and `bytes` more.
    #[must_use]
    pub const fn offset(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

/// A 4 KiB frame of physical memory, by number; 32 bits reach 16 TiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Frame(pub u32);

impl Frame {
    /// Its first byte.
    #[must_use]
    pub const fn start(self) -> PhysAddr {
        PhysAddr((self.0 as u64) << 12)
    }
}

/// An address that a program named: an allegation until the page tables confirm it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct UserAddr(pub u64);

/// Time-stamp counter ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct Tsc(pub u64);

/// Nanoseconds since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// A time that never comes.
    pub const NEVER: Self = Self(u64::MAX);
}
