//! The heap, used by many threads, and up to its end.

use alloc::alloc::{alloc, dealloc};
use alloc::vec::Vec;
use core::alloc::Layout;

use sysroot::thread;

const THREADS: u8 = 4;
const ROUNDS: usize = 400;

/// A block that is filled with one byte.
struct Block {
    address: *mut u8,
    layout: Layout,
    filling: u8,
}

impl Block {
    fn new(size: usize, align: usize, filling: u8) -> Self {
        let layout = Layout::from_size_align(size, align).unwrap();
        // SAFETY: the size is not zero.
        let address = unsafe { alloc(layout) };
        assert!(!address.is_null() && address.addr().is_multiple_of(align));
        // SAFETY: the block has this size and is nobody else's.
        unsafe { address.write_bytes(filling, size) }
        Self {
            address,
            layout,
            filling,
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the block was written as a whole when it was made.
        let bytes = unsafe { core::slice::from_raw_parts(self.address, self.layout.size()) };
        assert!(
            bytes.iter().all(|byte| *byte == self.filling),
            "another block's bytes"
        );
        // SAFETY: it was allocated with this layout, and is not used any more.
        unsafe { dealloc(self.address, self.layout) }
    }
}

/// Blocks of all sizes and alignments, by several threads at once, keep what was written to them.
pub fn shared() {
    thread::scope(|scope| {
        for own in 0..THREADS {
            let work = move || {
                let mut blocks = Vec::new();
                for round in 0..ROUNDS {
                    let size = 1 + round * 37 % 3000;
                    blocks.push(Block::new(size, 1 << (round % 13), own));
                    if round % 3 == 0 {
                        drop(blocks.swap_remove(round * 7 % blocks.len()));
                    }
                    if blocks.len() > 40 {
                        blocks.clear();
                    }
                }
            };
            scope.spawn(work).unwrap();
        }
    });
}

/// The heap grows to what the quota covers, in few steps; what does not fit is refused, and what there is stays usable.
pub fn large() {
    let mut parts = Vec::new();
    let mut bytes = 0;
    loop {
        let mut part = Vec::new();
        if part.try_reserve_exact(10_000).is_err() {
            break;
        }
        bytes += 10_000;
        part.resize(10_000, parts.len() as u8);
        parts.push(part);
    }
    // More than mappings of the least size would give.
    assert!(bytes > 5 << 20, "refused after {bytes} bytes");
    for (number, part) in parts.iter().enumerate() {
        assert!(part.iter().all(|byte| *byte == number as u8));
    }
    let mut huge = Vec::<u8>::new();
    assert!(huge.try_reserve_exact(1 << 40).is_err());
    assert!(huge.try_reserve_exact(isize::MAX as usize).is_err());
    drop(parts);
    // All of it is one block again.
    assert_eq!(huge.try_reserve_exact(bytes), Ok(()));
}
