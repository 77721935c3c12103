//! From an address to a ring's words: the only unsafe code that the kernel and programs share.

use crate::{AtomicU64, Geometry};

/// The words of a ring in memory.
///
/// # Safety
/// For all of `'a`:
/// - `base` is 8-byte aligned, and `geometry.bytes()` bytes from it are mapped and readable;
/// - whoever accesses them, in this address space or another, does it by atomic accesses of whole words;
/// - if a [`crate::Writer`] is made of the words, they are writable.
#[must_use]
pub unsafe fn words<'a>(base: *const u64, geometry: Geometry) -> &'a [AtomicU64] {
    // SAFETY: the caller vouches for alignment, size and lifetime. `AtomicU64` has the layout of `u64`, every bit pattern is
    // one, and its interior mutability allows for the writer on the other side of the mapping.
    unsafe { core::slice::from_raw_parts(base.cast::<AtomicU64>(), geometry.words()) }
}
