//! Handles, rights and object types. A handle is the only authority there is.

use super::numbered::numbered;
use bitflags::bitflags;

/// A process's name for an object: an index into its handle table and the generation of that entry, so that a handle
/// that was closed never names what came after it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Handle(u32);

impl Handle {
    /// Names nothing; every call refuses it with `BadHandle`.
    pub const NONE: Self = Self(0);
    /// Bits of the index; the rest is the generation, which is never zero in a handle that was given out.
    pub const INDEX_BITS: u32 = 12;

    /// The handle with this table index and generation.
    #[must_use]
    pub const fn new(index: u32, generation: u32) -> Self {
        Self((generation << Self::INDEX_BITS) | (index & ((1 << Self::INDEX_BITS) - 1)))
    }
    /// From its register form.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }
    /// Its register form.
    #[must_use]
    pub const fn raw(self) -> u32 {
        self.0
    }
    /// Index into the handle table.
    #[must_use]
    pub const fn index(self) -> usize {
        (self.0 & ((1 << Self::INDEX_BITS) - 1)) as usize
    }
    /// Generation of the entry, of 20 bits.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.0 >> Self::INDEX_BITS
    }
}

impl core::fmt::Debug for Handle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "#{}.{}", self.index(), self.generation())
    }
}

bitflags! {
    /// What a handle allows. Rights only ever shrink on the way from one process to another.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Rights: u32 {
        /// Make further handles to the object in the same process.
        const DUPLICATE = 1 << 0;
        /// Put the handle into a message or into another process.
        const TRANSFER = 1 << 1;
        /// Endpoint: call it.
        const CALL = 1 << 2;
        /// Endpoint: receive from it. The endpoint dies with its last handle that has this.
        const RECEIVE = 1 << 3;
        /// Endpoint: make handles with a badge.
        const MINT = 1 << 4;
        /// Notification: signal it.
        const SIGNAL = 1 << 5;
        /// Notification: wait on it, bind it, set its timer.
        const WAIT = 1 << 6;
        /// Memory: map for reading. I/O ports: read.
        const READ = 1 << 7;
        /// Memory: map for writing. I/O ports: write.
        const WRITE = 1 << 8;
        /// Memory: map for execution.
        const EXECUTE = 1 << 9;
        /// Process, thread, interrupt, profiler: change it.
        const MANAGE = 1 << 10;
        /// Process, thread, system: read its state.
        const INSPECT = 1 << 11;
        /// System: write to the kernel log.
        const LOG_WRITE = 1 << 12;
        /// System: read the kernel log.
        const LOG_READ = 1 << 13;
        /// System: make handles to device memory, I/O ports and interrupts.
        const DEVICES = 1 << 14;
        /// System: power off, reboot.
        const POWER = 1 << 15;
        /// System: create processes.
        const SPAWN = 1 << 16;
    }
}

numbered! {
    /// What kind of object a handle names.
    #[derive(Hash)]
    pub enum ObjectType: u8 {
        /// An address space, its handles and its threads.
        Process = 1,
        /// A flow of control.
        Thread = 2,
        /// Where calls are made and received.
        Endpoint = 3,
        /// A word of bits that can be waited on.
        Notification = 4,
        /// Pages.
        Memory = 5,
        /// A range of I/O ports.
        Ports = 6,
        /// An interrupt line.
        Interrupt = 7,
        /// The right to answer one call.
        Reply = 8,
        /// Control of the profiling driver.
        Profiler = 9,
        /// Control of the system.
        System = 10,
    }
}
