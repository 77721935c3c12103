//! The threads as the sampling path sees them: who runs here, and whom it serves.
//!
//! A client's registers and stack are read while its thread may be woken on another CPU. Its sequence number, which is
//! bumped at each block and unblock, tells: a part is read between two looks at it, and kept only if they agree.
//!
//! # Ordering
//! Who unblocks a thread bumps its sequence (relaxed), then passes a release fence, then touches its registers or lets
//! it run or serve another. [`Threads::served`] loads the sequence with acquire; the walk loads atomically; then comes an acquire fence and
//! the second look. If the walk read anything that was written after the unblocking, the two fences order the bump before
//! the second look, which then differs.
//!
//! # A link is two words
//! Whom a thread serves, and that one's sequence number, are two loads, and a link that is half of one and half of another would be no
//! link. It is none that is used. A link is written by its thread while that runs, or by who has claimed the thread while it waits to receive.
//! - The first link is that of the thread which this CPU runs, interrupted here: nobody writes it meanwhile. It may be interrupted in the
//!   middle of writing: so the link is taken away first, and put back last.
//! - Any other is that of a client, and is followed between the two looks at that client. Who writes it has claimed the client before, and
//!   so changed what the second look sees: then neither the part nor the link is used.

use crate::base::addr::Frame;
use crate::base::regs::SavedRegs;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Who a thread is.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The number of its process, and in the upper half its own: a word of a record.
    pub ids: &'a AtomicU64,
    /// Its process's image, as given to `process_create`.
    pub image: &'a AtomicU32,
}

/// What a record needs to know of a thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadView<'a> {
    /// Who it is.
    pub names: Names<'a>,
    /// Root of its address space. It and all tables below stay tables until a grace period has passed.
    pub root: Frame,
    /// Its registers while it is in the kernel or not running.
    pub regs: &'a SavedRegs,
}

/// The threads, as seen from one CPU. It is asked in an NMI: no lock; loads are atomic; a reference may be stale, and then
/// the answer is `None` or that of whoever has the slot now, never a fault.
pub trait Threads: Copy {
    /// Names a thread.
    type Thread: Copy;

    /// The current thread of this CPU; `None` when it has none.
    fn current(&self) -> Option<Self::Thread>;
    /// Who a thread is; if it is gone, it may be somebody else.
    fn names(&self, thread: Self::Thread) -> Names<'_>;
    /// What there is to know of a thread; `None` if it is gone.
    fn view(&self, thread: Self::Thread) -> Option<ThreadView<'_>>;
    /// The client whose call the thread serves, and the client's sequence number at a time when the thread served it.
    fn served(&self, thread: Self::Thread) -> Option<(Self::Thread, u64)>;
    /// A thread's sequence number now. Need not order anything: the caller passed an acquire fence.
    fn sequence(&self, thread: Self::Thread) -> u64;
}
