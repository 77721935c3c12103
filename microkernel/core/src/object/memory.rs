//! Memory objects: pages that can be mapped. A memory object lives as long as a handle, a mapping or a part of it does.

use crate::base::addr::Frame;
use crate::base::lock::{Lock, rank};
use crate::base::pool::Ref;
use crate::mem::frame_list::FrameList;
use core::sync::atomic::AtomicU32;

/// Where an object's pages are.
#[derive(Clone, Copy, Debug)]
pub enum Backing {
    /// Frames anywhere, owned.
    Paged(FrameList),
    /// Frames in a row, owned.
    Contiguous(Frame),
    /// Frames in a row that belong to the boot module or the kernel, or to the object this is a part of.
    Borrowed(Frame, Option<Ref<Memory>>),
    /// Device registers: mapped uncached.
    Device(Frame),
}

/// What a memory object's lock guards.
#[derive(Debug)]
pub struct Pages {
    /// Where they are.
    pub backing: Backing,
    /// How many.
    pub count: u64,
    /// How many are there: less than `count` while the object is made or freed.
    pub ready: u64,
}

/// A memory object.
#[derive(Debug)]
pub struct Memory {
    /// Its pages.
    pub pages: Lock<Pages, { rank::MEMORY }>,
    /// Handles, mappings, parts and IPC buffers.
    pub refs: AtomicU32,
    /// Pool slot of the process its pages are charged to.
    pub payer: AtomicU32,
}

impl Memory {
    /// An empty slot.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            pages: Lock::new(Pages {
                backing: Backing::Contiguous(Frame(0)),
                count: 0,
                ready: 0,
            }),
            refs: AtomicU32::new(0),
            payer: AtomicU32::new(u32::MAX),
        }
    }
}
