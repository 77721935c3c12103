//! Addresses and limits that the kernel, every program and the builder agree on.

/// Bytes in a page.
pub const PAGE_SIZE: u64 = 4096;
/// First address a program may map: page zero and its neighbours stay unmapped, so that null pointers fault.
pub const USER_START: u64 = 0x1_0000;
/// End of what a program may map. The last page of the lower half is never mapped, so that a SYSCALL at its end cannot
/// make a return address that is not canonical.
pub const USER_END: u64 = 0x7fff_ffff_f000;
/// Where programs are linked.
pub const PROGRAM_BASE: u64 = 0x40_0000;
/// The kernel's information page ([`super::info::InfoPage`]): mapped read-only into every process when it is created.
pub const INFO_PAGE: u64 = 0x7fff_ffff_d000;
/// End of the physical addresses that can be used: frame numbers have 32 bits.
pub const PHYSICAL_END: u64 = 1 << 44;
/// Interrupt lines that can be taken, from line 0 on.
pub const INTERRUPTS: u32 = 192;
/// Highest priority of a thread; the lowest is 0.
pub const PRIORITY_MAX: u8 = 31;
/// Mappings that a process has at most.
pub const MAPPINGS_MAX: u64 = 64;
/// Longest boot command line that is kept, in bytes.
pub const COMMAND_LINE_MAX: usize = 1024;
/// Longest process name, in bytes.
pub const NAME_MAX: usize = 16;
/// Longest line of the kernel log in bytes, with what it begins with and the end of line; longer text goes on in another line.
pub const LOG_LINE_MAX: usize = 256;
/// Longest piece of the kernel log that one call writes or reads, in bytes.
pub const LOG_PART_MAX: usize = 1024;

/// QEMU's exit device, where the machine has one: the value `v` written there ends QEMU with the status `2 v + 1`.
pub const EXIT_PORT: u16 = 0xf4;
/// Written there at an explicit power-off.
pub const EXIT_OFF: u32 = 0x10;
/// Written there after a panic, or on a machine that Sonde cannot run on.
pub const EXIT_FAILURE: u32 = 0x11;
/// Written there at an explicit restart: who runs QEMU starts it again.
pub const EXIT_REBOOT: u32 = 0x12;
