//! Physical memory through the direct map: the one place that makes pointers of physical addresses.
//!
//! Invariant: everything in the RAM that the boot found is mapped at [`DIRECT_MAP`] for ever, except the kernel's code and
//! constants; the boot module is mapped without write access. During the start, `boot.s` has mapped the first 4 GiB there.

use super::layout::{DIRECT_MAP, PAGE};
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use kcore::boot::memory::Range;

/// A pointer to physical memory.
#[must_use]
pub const fn pointer<T>(at: u64) -> *mut T {
    // Physical addresses are below it; so the sum is never 0, which the compiler cannot tell of an addition.
    (DIRECT_MAP | at) as *mut T
}

/// Reads an aligned word.
///
/// # Safety
/// `at` is a multiple of 8 and in mapped RAM.
pub unsafe fn read(at: u64) -> u64 {
    // SAFETY: mapped and aligned, as the caller promises; all access to such words is atomic or by their owner.
    let word = unsafe { &*pointer::<AtomicU64>(at) };
    word.load(Ordering::Relaxed)
}

/// Writes an aligned word.
///
/// # Safety
/// `at` is a multiple of 8, in mapped RAM that is writable and that holds no Rust object.
pub unsafe fn write(at: u64, value: u64) {
    // SAFETY: as for `read`.
    let word = unsafe { &*pointer::<AtomicU64>(at) };
    word.store(value, Ordering::Relaxed);
}

/// Zeroes a frame.
///
/// # Safety
/// `at` is a multiple of the page size, in mapped writable RAM that holds no Rust object.
pub unsafe fn zero(at: u64) {
    // SAFETY: a whole frame of mapped RAM, as the caller promises.
    unsafe { core::ptr::write_bytes(pointer::<u8>(at), 0, PAGE as usize) };
}

/// Copies bytes that programs may be changing meanwhile: each is loaded and stored once, by instructions that the compiler does
/// not look into.
///
/// # Safety
/// `from` can be read and `to` written, for `bytes` each, and they do not overlap; no Rust reference is held to what programs change.
pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: within the two ranges, as the caller promises; the direction flag is clear in the kernel, and stays so.
    unsafe {
        asm!(
            "rep movsq",
            "mov rcx, {rest}",
            "rep movsb",
            rest = in(reg) bytes % 8,
            inout("rcx") bytes / 8 => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
}

/// The bytes of the boot module.
#[must_use]
pub fn module_bytes(module: Range) -> &'static [u8] {
    // SAFETY: the module was taken out of the RAM that is handed out and is mapped without write access, for ever.
    unsafe { core::slice::from_raw_parts(pointer(module.start), module.bytes() as usize) }
}
