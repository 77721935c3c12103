//! The heap: it begins empty at the address that the startup page names, and grows at its end from the program's quota.
//!
//! It grows by a part of what it has, because each growth is a mapping, of which a process has few; if the quota does not cover
//! that, by what is needed. Memory that was freed is used again by the program, and stays with it until it ends. Threads
//! share the heap, which is behind one lock. An allocation that the quota does not cover fails as Rust has it: a panic with the
//! size, unless the caller used a `try_` method.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

use ipc::abi::layout::PAGE_SIZE;
use ipc::abi::{Error, Handle, Rights};

use crate::{Mutex, OwnedHandle, startup, syscall};

/// Least pages to grow by.
const STEP_PAGES: u64 = 8;
/// The heap grows by at least one part in so many. From nothing to all the memory that a program can be given, 1 GiB, that is 26 mappings.
const GROWTH: u64 = 2;
/// Bytes of the allocator's headers before and behind a block, of two words each.
const HEADERS: usize = 32;

#[global_allocator]
static HEAP: GlobalHeap = GlobalHeap(Mutex::new(Heap {
    blocks: linked_list_allocator::Heap::empty(),
    bytes: 0,
}));

struct GlobalHeap(Mutex<Heap>);

struct Heap {
    blocks: linked_list_allocator::Heap,
    /// Mapped so far.
    bytes: u64,
}

impl Heap {
    fn allocate(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        if let Ok(block) = self.blocks.allocate_first_fit(layout) {
            return Some(block);
        }
        // So much more than asked that the new end holds it wherever that begins: it must be aligned, and leave room for headers.
        let bytes = layout.size().checked_add(2 * layout.align().max(HEADERS))?;
        let pages = (bytes as u64).div_ceil(PAGE_SIZE);
        let more = self.bytes / PAGE_SIZE / GROWTH;
        self.grow(pages.max(STEP_PAGES).max(more))
            .or_else(|_| self.grow(pages))
            .ok()?;
        self.blocks.allocate_first_fit(layout).ok()
    }

    fn grow(&mut self, pages: u64) -> Result<(), Error> {
        let page = startup::page();
        let bytes = pages
            .checked_mul(PAGE_SIZE)
            .filter(|&bytes| bytes <= page.heap_bytes - self.bytes)
            .ok_or(Error::LimitReached)?;
        let address = page.heap_base + self.bytes;
        let memory = OwnedHandle::new(syscall::memory_create(Handle::NONE, pages, 0)?);
        let rights = Rights::READ | Rights::WRITE;
        // SAFETY: the range lies behind what is mapped of the heap, which is nobody else's to map (`mapping` uses the
        // addresses above it); were it mapped, the kernel would refuse.
        unsafe { syscall::map(Handle::NONE, memory.raw(), address, 0, pages, rights) }?;
        if self.bytes == 0 {
            // SAFETY: the range was just mapped for reading and writing, stays so, and is used by this allocator alone.
            unsafe { self.blocks.init(address as *mut u8, bytes as usize) }
        } else {
            // SAFETY: as above, and it begins where the heap ended.
            unsafe { self.blocks.extend(bytes as usize) }
        }
        self.bytes += bytes;
        Ok(())
    }
}

// SAFETY: `blocks` hands out disjoint blocks of mapped memory that fit their layouts, under a lock; growing only adds
// memory behind them.
unsafe impl GlobalAlloc for GlobalHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = self.0.lock().allocate(layout);
        block.map_or(core::ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let Some(block) = NonNull::new(block) {
            // SAFETY: the caller gives back what `alloc` returned for this layout, as the trait demands.
            unsafe { self.0.lock().blocks.deallocate(block, layout) }
        }
    }
}
