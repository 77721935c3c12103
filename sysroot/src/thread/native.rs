//! A thread as the kernel has it, and what it runs on: a stack above a guard page, and an IPC buffer.
//!
//! In the buffer's page, behind the handle slots, are the thread's control block (`ipc::abi::startup`), the handle that it waits
//! with (`park`), and the *exit word*: 0 while it runs, then the one who waits for its end, and [`LEFT`] as the thread's last
//! write. After it the thread uses no memory of the program any more (`start::leave`), so all of this can be unmapped.

use alloc::vec::Vec;
use core::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire},
};

use ipc::abi::info::ThreadState;
use ipc::abi::layout::PAGE_SIZE;
use ipc::abi::message::HANDLES_END;
use ipc::abi::startup::{CONTROL_OFFSET, ControlBlock};
use ipc::abi::{Error, Handle};

use super::start;
use crate::park::{self, PARKER_OFFSET, Reason, Waiter};
use crate::{Mapping, Mutex, OwnedHandle, syscall};

/// Offset of the exit word in the page of the IPC buffer.
pub const EXIT_OFFSET: u64 = PARKER_OFFSET - 8;
/// In the exit word: the thread has left its stack.
pub const LEFT: u32 = u32::MAX;
/// In the exit word: the thread runs, and nobody waits for its end.
const RUNS: u32 = 0;

const _: () = assert!(EXIT_OFFSET >= HANDLES_END as u64);

/// Threads that nobody will join.
static DETACHED: Mutex<Vec<NativeThread>> = Mutex::new(Vec::new());

/// A thread that was started, and its memory. Whoever has it drops it only when the thread has left; fields are dropped in
/// this order.
#[derive(Debug)]
pub struct NativeThread {
    thread: OwnedHandle,
    /// The notification by which it is woken.
    _parker: OwnedHandle,
    _stack: Mapping,
    buffer: Mapping,
}

impl NativeThread {
    /// Starts a thread with a stack of at least `stack_bytes` bytes.
    ///
    /// # Errors
    /// No memory, or no room for another thread.
    ///
    /// # Safety
    /// What `body` borrows outlives its use by the thread.
    pub unsafe fn start<F: FnOnce() + Send>(stack_bytes: usize, body: F) -> Result<Self, Error> {
        free_detached();
        park::prepare()?;
        let stack_pages = (stack_bytes as u64).div_ceil(PAGE_SIZE).max(1);
        let stack = Mapping::stack(stack_pages)?;
        let (memory, buffer) = Mapping::create(1)?;
        let parker = OwnedHandle::new(syscall::notification_create()?);
        let control = ControlBlock::new(buffer.address());
        // SAFETY: the page was just mapped for writing, the offset is inside it and aligned, and no thread uses it yet.
        unsafe { ((buffer.address() + CONTROL_OFFSET) as *mut ControlBlock).write(control) };
        // SAFETY: as above.
        unsafe { ((buffer.address() + PARKER_OFFSET) as *mut u32).write(parker.raw().raw()) };
        // SAFETY: the caller vouches for it.
        let thread = unsafe { start::start(stack.end(), &control, memory.raw(), body) }?;
        Ok(Self {
            thread,
            _parker: parker,
            _stack: stack,
            buffer,
        })
    }

    /// The thread.
    pub const fn handle(&self) -> Handle {
        self.thread.raw()
    }

    fn exit(&self) -> &AtomicU32 {
        // SAFETY: the word is inside the page, aligned, zero at first, and mapped while `self` lives; the thread touches it
        // by one atomic instruction.
        unsafe { &*((self.buffer.address() + EXIT_OFFSET) as *const AtomicU32) }
    }

    /// Whether the thread has left its stack.
    pub fn was_left(&self) -> bool {
        self.exit().load(Acquire) == LEFT
    }

    /// Waits until the thread has left, and frees its memory.
    pub fn wait(self) {
        let state = syscall::thread_info(self.thread.raw()).map(|(_, state, _)| state);
        if state == Ok(ThreadState::Dead as u64) {
            return;
        }
        let own = Waiter::current().raw();
        if self
            .exit()
            .compare_exchange(RUNS, own, AcqRel, Acquire)
            .is_ok()
        {
            park::wait(Reason::Event);
        }
    }

    /// Leaves the thread to itself. Its memory is freed by a later start.
    pub fn detach(self) {
        DETACHED.lock().push(self);
    }
}

/// Frees the memory of detached threads that have left.
fn free_detached() {
    let mut left = Vec::new();
    {
        let mut detached = DETACHED.lock();
        left.extend(detached.extract_if(.., |native| native.was_left()));
    }
    drop(left);
}
