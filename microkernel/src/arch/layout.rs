//! Where things are in the upper half of every address space.

/// All RAM, at its physical address plus this: never executable, and without the kernel's code and constants.
pub const DIRECT_MAP: u64 = 0xffff_8000_0000_0000;
/// Stacks and block of CPU `n`, at `n` times [`super::percpu::AREA_SIZE`].
pub const CPU_AREAS: u64 = 0xffff_c000_0000_0000;
/// A page that is mapped where the kernel must look for a moment.
pub const WINDOW: u64 = 0xffff_d000_0000_0000;
/// Registers of devices, in the order in which they were mapped.
pub const DEVICES: u64 = 0xffff_d000_0010_0000;
/// What the kernel image's physical addresses are moved by.
pub const KERNEL_BASE: u64 = 0xffff_ffff_8000_0000;

/// Bytes in a page.
pub const PAGE: u64 = 4096;
/// What the map of `boot.s` reaches.
pub const BOOT_MAP_END: u64 = 1 << 32;
