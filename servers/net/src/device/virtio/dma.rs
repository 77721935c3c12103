//! Memory that the device reads and writes: rings, and buffers for frames.
//!
//! The device may write to it at any time, whatever it was told. So what is in a buffer is copied out word by word, by atomics, before anybody
//! looks at it, and no plain reference to it is kept. The rings are `virtio-drivers`', which believes nothing that it reads back.

#![expect(unsafe_code, reason = "memory that is shared with a device")]

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use virtio_drivers::{BufferDirection, Hal, PAGE_SIZE, PhysAddr};

/// Bytes from the begin of a buffer to the next.
pub const BUFFER_STRIDE: usize = 2048;
/// Words of a buffer: a frame without a tag, and the header before it.
pub const BUFFER_WORDS: usize = 192;
/// The same in bytes.
pub const BUFFER_BYTES: usize = BUFFER_WORDS * 8;

/// Buffers of [`BUFFER_BYTES`] each.
pub struct Buffers<H> {
    first: NonNull<u8>,
    count: u16,
    hal: PhantomData<H>,
}

// SAFETY: the pages are mapped in every thread alike, and what is in them is reached through `&self` by atomics alone.
unsafe impl<H> Send for Buffers<H> {}

impl<H: Hal> Buffers<H> {
    /// So many of them; `None` if there is no memory for them. They are not freed: a device has its buffers for good.
    pub fn new(count: u16, direction: BufferDirection) -> Option<Self> {
        let pages = (usize::from(count) * BUFFER_STRIDE).div_ceil(PAGE_SIZE);
        let (physical, first) = H::dma_alloc(pages, direction);
        (physical != 0).then_some(Self {
            first,
            count,
            hal: PhantomData,
        })
    }

    /// The words of a buffer; none if there is no such buffer.
    pub fn words(&self, buffer: u16) -> &[AtomicU64] {
        if buffer >= self.count {
            return &[];
        }
        let first = self.pointer(buffer).cast::<AtomicU64>().as_ptr();
        // SAFETY: the buffer is in pages that `dma_alloc` gave, aligned to words, for as long as `self`; atomics may be shared with
        // anybody, and the slices of `bytes` are given only to `virtio-drivers`, which does not look into them.
        unsafe { core::slice::from_raw_parts(first, BUFFER_WORDS) }
    }

    /// The first bytes of a buffer, to be handed to the rings; at most [`BUFFER_BYTES`].
    ///
    /// # Safety
    /// The slice is not read, written or kept: it only says where the buffer is.
    pub unsafe fn bytes(&mut self, buffer: u16, len: usize) -> &mut [u8] {
        let buffer = buffer.min(self.count.saturating_sub(1));
        let len = len.min(BUFFER_BYTES);
        // SAFETY: the bytes are in pages that `dma_alloc` gave; that nobody accesses them through the slice is the caller's promise.
        unsafe { core::slice::from_raw_parts_mut(self.pointer(buffer).as_ptr(), len) }
    }

    const fn pointer(&self, buffer: u16) -> NonNull<u8> {
        // SAFETY: there are `count` strides in the pages, and the buffer is one of them.
        unsafe { self.first.add(buffer as usize * BUFFER_STRIDE) }
    }
}

/// The memory that init gave, from which rings and buffers are taken once: all of it is in a row, so that addresses
/// differ by the same for the device and for the program.
struct Pool {
    first: AtomicUsize,
    physical: AtomicU64,
    pages: AtomicUsize,
    taken: AtomicUsize,
}

static POOL: Pool = Pool {
    first: AtomicUsize::new(0),
    physical: AtomicU64::new(0),
    pages: AtomicUsize::new(0),
    taken: AtomicUsize::new(0),
};

/// Lets [`Given`] take memory from these pages, whose physical address is `physical`.
///
/// # Safety
/// They are mapped for reading and writing for good, in a row in both kinds of addresses, and nobody else in the program
/// accesses them. It is called once, before a device is made.
pub unsafe fn give(memory: NonNull<[u8]>, physical: u64) {
    let pages = memory.len() / PAGE_SIZE;
    POOL.physical.store(physical, Ordering::Relaxed);
    POOL.pages.store(pages, Ordering::Relaxed);
    let first = memory.cast::<u8>().as_ptr();
    POOL.first
        .store(first.expose_provenance(), Ordering::Release);
}

/// The memory that init gave, for `virtio-drivers`.
pub struct Given;

// SAFETY: each allocation is of pages that nobody has taken before, in memory that `give` was promised is mapped for good;
// they are zeroed, and none is given back.
unsafe impl Hal for Given {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        const NOTHING: (PhysAddr, NonNull<u8>) = (0, NonNull::dangling());
        let first = POOL.first.load(Ordering::Acquire);
        let all = POOL.pages.load(Ordering::Relaxed);
        let take = |taken: usize| taken.checked_add(pages).filter(|&end| end <= all);
        let taken = POOL
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let (true, Ok(taken)) = (first != 0, taken) else {
            return NOTHING;
        };
        let offset = taken * PAGE_SIZE;
        let place = core::ptr::with_exposed_provenance_mut::<u8>(first + offset);
        let Some(pointer) = NonNull::new(place) else {
            return NOTHING;
        };
        // SAFETY: the pages are inside the mapping, and nobody else has them.
        unsafe { pointer.write_bytes(0, pages * PAGE_SIZE) };
        let physical = POOL.physical.load(Ordering::Relaxed) + offset as u64;
        (physical, pointer)
    }

    unsafe fn dma_dealloc(_: PhysAddr, _: NonNull<u8>, _: usize) -> i32 {
        0
    }

    unsafe fn mmio_phys_to_virt(_: PhysAddr, _: usize) -> NonNull<u8> {
        // Only the crate's own transport for PCI asks for this, which is not used.
        NonNull::dangling()
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        let first = POOL.first.load(Ordering::Acquire);
        let offset = buffer.cast::<u8>().addr().get().checked_sub(first);
        let bytes = POOL.pages.load(Ordering::Relaxed) * PAGE_SIZE;
        let offset = offset.filter(|offset| offset + buffer.len() <= bytes);
        let offset = offset.expect("only buffers in the pool are handed to the rings");
        POOL.physical.load(Ordering::Relaxed) + offset as u64
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(4096))]
    struct Pages([u8; 4 * PAGE_SIZE]);

    /// The one test of the pool, of which a program has one.
    #[test]
    fn pages_are_given_once_zeroed_and_at_addresses_that_differ_by_the_same() {
        const PHYSICAL: u64 = 0x4000_0000;
        let direction = BufferDirection::Both;
        assert_eq!(Given::dma_alloc(0, direction).0, 0, "before there is any");
        let pages: &'static mut Pages = Box::leak(Box::new(Pages([0xee; 4 * PAGE_SIZE])));
        let memory = NonNull::from(&mut pages.0);
        // SAFETY: leaked, and used by nobody else.
        unsafe { give(memory, PHYSICAL) };
        let first = memory.cast::<u8>();
        let (physical, one) = Given::dma_alloc(1, direction);
        assert_eq!((physical, one), (PHYSICAL, first));
        let buffers = Buffers::<Given>::new(3, direction).unwrap();
        assert!(
            buffers
                .words(0)
                .iter()
                .all(|word| word.load(Ordering::Relaxed) == 0)
        );
        assert_eq!(buffers.words(2).len(), BUFFER_WORDS);
        assert_eq!(buffers.words(3).len(), 0);
        let mut buffers = buffers;
        // SAFETY: the slice is only asked where it is.
        let slice = NonNull::from(unsafe { buffers.bytes(1, 100) });
        assert_eq!(slice.len(), 100);
        // SAFETY: as above.
        let shared = unsafe { Given::share(slice, direction) };
        assert_eq!(shared, PHYSICAL + (PAGE_SIZE + BUFFER_STRIDE) as u64);
        assert_eq!(Given::dma_alloc(2, direction).0, 0, "one page is left");
        assert!(Buffers::<Given>::new(2, direction).is_some());
        assert!(Buffers::<Given>::new(1, direction).is_none());
    }
}
