//! The threads as the sampling path sees them: who runs here, and whom it serves.
//!
//! A client's registers and stack are read while its thread may be woken on another CPU. Its sequence number, which is
//! bumped at each block and unblock, tells: a part is read between two looks at it, and kept only if they agree.
//!
//! # Ordering
//! Who unblocks a thread bumps its sequence (relaxed), then passes a release fence, then touches its registers or lets
//! it run. [`Threads::served`] loads the sequence with acquire; the walk loads atomically; then comes an acquire fence and
//! the second look. If the walk read anything that was written after the unblocking, the two fences order the bump before
//! the second look, which then differs.

use crate::base::addr::Frame;
use crate::base::regs::SavedRegs;

/// What a record needs to know of a thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadView<'a> {
    /// Its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
    /// Its process's image, as given to `process_create`.
    pub image: u32,
    /// Root of its address space. It and all tables below stay tables until a grace period has passed.
    pub root: Frame,
    /// Its registers while it is in the kernel or not running.
    pub regs: &'a SavedRegs,
}

/// The threads, as seen from one CPU. It is asked in an NMI: no lock; loads are atomic; a reference may be stale, and then
/// the answer is `None` or that of whoever has the slot now, never a fault.
pub trait Threads {
    /// Names a thread.
    type Thread: Copy;

    /// The current thread of this CPU; `None` when it has none.
    fn current(&self) -> Option<Self::Thread>;
    /// What there is to know of a thread; `None` if it is gone.
    fn view(&self, thread: Self::Thread) -> Option<ThreadView<'_>>;
    /// The client whose call the thread serves, and the client's sequence number at a time when the thread served it.
    fn served(&self, thread: Self::Thread) -> Option<(Self::Thread, u64)>;
    /// A thread's sequence number now. Need not order anything: the caller passed an acquire fence.
    fn sequence(&self, thread: Self::Thread) -> u64;
}
