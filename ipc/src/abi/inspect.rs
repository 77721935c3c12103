//! Records of `system_info` about single objects: what is in the slots of the kernel's pools, how deep its stacks were used, and who
//! was interrupted by what.
//!
//! A slot that is in use has a record, any other has none. Records of different slots are read one after the other, while the system
//! goes on: those that show time say at which they were read.

use super::info::Pool;
use super::layout::{MAPPINGS_MAX, NAME_MAX};
use super::numbered::numbered;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A process, until its last trace is gone: also one that has ended, and that a handle, an object or a child still names.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ProcessInfo {
    /// Process id.
    pub pid: u64,
    /// That of the process which its quota came from; 0 for the first.
    pub parent: u64,
    /// Image number that its creator gave.
    pub image: u64,
    /// Name, padded with zeroes.
    pub name: [u8; NAME_MAX],
    /// An [`ExitReason`](super::exit::ExitReason): why it has ended, or `Running`.
    pub reason: u64,
    /// Pages charged to it.
    pub pages: u64,
    /// Pages it may be charged.
    pub quota_pages: u64,
    /// Handles in its table.
    pub handles: u64,
    /// Objects on its account, by [`Pool`], from threads on. An object stays on it until it is freed, whoever names it meanwhile. So the
    /// sum over all processes is what the pools have in use: the kernel has none of its own.
    pub objects: [u64; Pool::ALL.len() - 1],
    /// Nanoseconds that its threads ran which have ended.
    pub ended_ns: u64,
    /// Nanoseconds that processes ran whose quota came from it, and that have no record any more.
    pub gone_ns: u64,
}

/// A thread that has not ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ThreadInfo {
    /// Thread id.
    pub tid: u64,
    /// Its process.
    pub pid: u64,
    /// The process's slot.
    pub process: u64,
    /// A [`ThreadState`](super::info::ThreadState).
    pub state: u64,
    /// CPU it ran on last, or runs on.
    pub cpu: u64,
    /// Priority it has: the one it was given, or more while it serves.
    pub priority: u64,
    /// Priority it was given.
    pub base_priority: u64,
    /// CPU it may run on; `u64::MAX` for any.
    pub pinned: u64,
    /// Nanoseconds it ran, up to now.
    pub cpu_ns: u64,
    /// When this was read, in nanoseconds since boot.
    pub at_ns: u64,
    /// Stack pointer that it was created with.
    pub stack: u64,
    /// Memory object that its IPC buffer is in, as [`MappingInfo::object`] tells it.
    pub buffer: u64,
}

numbered! {
    /// Where the pages of a mapping come from.
    pub enum MappingSource: u64 {
        /// Memory that was made for programs.
        Memory = 0,
        /// Memory in a row, for devices that read and write it.
        Contiguous = 1,
        /// The boot archive.
        Archive = 2,
        /// The profiler's rings.
        Rings = 3,
        /// Registers of a device.
        Device = 4,
    }
}

/// A mapping. The information page, which every process has, is none.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct MappingInfo {
    /// Process id.
    pub pid: u64,
    /// First byte.
    pub address: u64,
    /// How many pages.
    pub pages: u64,
    /// How it is mapped: [`Rights`](super::Rights).
    pub rights: u64,
    /// How it may be mapped, by `protect`: [`Rights`](super::Rights).
    pub allowed: u64,
    /// A [`MappingSource`].
    pub source: u64,
    /// Page that is mapped first, counted from the beginning of the object; of the archive, from the archive's.
    pub first: u64,
    /// Tells the memory object from every other, and from those that were freed.
    pub object: u64,
}

/// A page of RAM that is mapped.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PageInfo {
    /// Process id.
    pub pid: u64,
    /// Its first byte.
    pub address: u64,
    /// Bytes at its beginning that are zero, in whole words. Memory is made of zeroes and stacks grow down, so a stack has never been
    /// used below its first word that is not zero, unless somebody wrote zeroes there.
    pub zeroes: u64,
}

numbered! {
    /// Which stack of a CPU.
    pub enum StackKind: u64 {
        /// For everything that comes from programs or while idle. The first CPU's had the boot on it.
        Kernel = 0,
        /// NMIs.
        Nmi = 1,
        /// Double faults.
        DoubleFault = 2,
        /// Machine checks.
        MachineCheck = 3,
    }
}

/// A stack of the kernel. Stacks are filled with a pattern at boot: it is used down to the lowest word that shows another.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct StackInfo {
    /// Its size.
    pub bytes: u64,
    /// Bytes that were ever used.
    pub used: u64,
}

/// What a CPU was interrupted by since it began to take part.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct InterruptInfo {
    /// Its timer.
    pub timer: u64,
    /// Other CPUs, or itself: kicks.
    pub kicks: u64,
    /// Interrupt lines.
    pub lines: u64,
    /// Errors of its local APIC, and vectors that nothing should use.
    pub errors: u64,
    /// Spurious interrupts, of the local APIC or the old controllers.
    pub spurious: u64,
    /// NMIs.
    pub nmis: u64,
    /// Exceptions of programs, which are no interrupts.
    pub exceptions: u64,
}

impl InterruptInfo {
    /// Interrupts of every kind.
    #[must_use]
    pub const fn interrupts(&self) -> u64 {
        self.timer + self.kicks + self.lines + self.errors + self.spurious + self.nmis
    }
}

/// An interrupt line.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct LineInfo {
    /// Process that took the line with `interrupt_create`; 0 if it is free.
    pub taken_by: u64,
    /// Process that acknowledged an interrupt of it last, which is the driver; 0 if none has since it was taken.
    pub driver: u64,
    /// Interrupts since boot.
    pub count: u64,
    /// Whether devices signal it by messages.
    pub by_message: u64,
}

/// Index of a process's mapping number `n`, from 0 to [`MAPPINGS_MAX`] - 1. Numbers change when another mapping goes.
#[must_use]
pub const fn mapping_index(process: u64, n: u64) -> u64 {
    process * MAPPINGS_MAX + n
}

/// Bits of the page number in an index of a page.
pub const PAGE_BITS: u32 = 32;

/// Index of page number `page` of the mapping with this index.
#[must_use]
pub const fn page_index(mapping: u64, page: u64) -> u64 {
    mapping << PAGE_BITS | page
}

/// Index of a CPU's stack.
#[must_use]
pub const fn stack_index(cpu: u64, which: StackKind) -> u64 {
    cpu * StackKind::ALL.len() as u64 + which as u64
}
