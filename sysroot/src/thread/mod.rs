//! Threads. The shape is that of `std::thread`, but starting one can fail, and a panic in one ends the whole program.
//!
//! A thread has a stack with an unmapped page below it, and an IPC buffer ([`native`]). Joining blocks until the
//! thread has left its stack for good; then stack and buffer are unmapped. Those of a thread that is never joined go when
//! the next thread is started after its end.

mod native;
mod scope;
mod start;

use alloc::sync::Arc;
use core::time::Duration;

use ipc::abi::{Error, Handle};

use crate::{Mutex, syscall, time};
use native::NativeThread;

pub use scope::{Scope, ScopedJoinHandle, scope};

/// Stack of a thread that asks for no other, in bytes.
pub const STACK_BYTES: usize = 64 * 1024;

/// How a thread is to be started.
#[derive(Clone, Debug)]
pub struct Builder {
    stack_bytes: usize,
}

impl Builder {
    /// With a stack of [`STACK_BYTES`].
    #[must_use]
    pub const fn new() -> Self {
        Self {
            stack_bytes: STACK_BYTES,
        }
    }

    /// With a stack of at least so many bytes, and one page at least.
    #[must_use]
    pub const fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_bytes = bytes;
        self
    }

    /// Starts a thread, with the caller's priority.
    ///
    /// # Errors
    /// No memory, or no room for another thread.
    pub fn spawn<T, F>(self, body: F) -> Result<JoinHandle<T>, Error>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        // SAFETY: the body borrows nothing.
        unsafe { self.start(body, || {}) }.map(JoinHandle)
    }

    /// Starts a thread that does `body`, then drops what it has left of it, and last does `end`.
    ///
    /// # Safety
    /// What `body` and its result borrow outlives the thread, or at least `end`.
    unsafe fn start<'a, T, F>(
        self,
        body: F,
        end: impl FnOnce() + Send + 'a,
    ) -> Result<Running<T>, Error>
    where
        T: Send + 'a,
        F: FnOnce() -> T + Send + 'a,
    {
        let result = Arc::new(Mutex::new(None));
        let theirs = Arc::clone(&result);
        let body = move || {
            let value = body();
            *theirs.lock() = Some(value);
            drop(theirs);
            end();
        };
        // SAFETY: the caller vouches for it.
        let native = unsafe { NativeThread::start(self.stack_bytes, body) }?;
        let native = Some(native);
        Ok(Running { native, result })
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

/// A thread that was started, and where it leaves its result.
#[derive(Debug)]
struct Running<T> {
    /// Taken by `join`.
    native: Option<NativeThread>,
    result: Arc<Mutex<Option<T>>>,
}

impl<T> Running<T> {
    fn handle(&self) -> Handle {
        self.native
            .as_ref()
            .map_or(Handle::NONE, NativeThread::handle)
    }

    fn is_finished(&self) -> bool {
        self.native.as_ref().is_none_or(NativeThread::was_left)
    }

    fn join(mut self) -> Result<T, Error> {
        if let Some(native) = self.native.take() {
            native.wait();
        }
        self.result.lock().take().ok_or(Error::PeerDied)
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        if let Some(native) = self.native.take() {
            native.detach();
        }
    }
}

/// A thread that was started. Dropped without `join`, the thread goes on by itself.
#[derive(Debug)]
pub struct JoinHandle<T>(Running<T>);

impl<T> JoinHandle<T> {
    /// The thread, to set its priority or look at its state.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.handle()
    }

    /// Whether `join` would not wait.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits until the thread has ended, and gives what it returned. Its memory is given back; the kernel takes it off the
    /// program's account after a grace period.
    ///
    /// # Errors
    /// `PeerDied` if it left no result, because it had ended itself by a bare system call. (If it does so during the join, that
    /// waits for ever: threads end by returning.)
    pub fn join(self) -> Result<T, Error> {
        self.0.join()
    }
}

/// Starts a thread with a stack of [`STACK_BYTES`] and the caller's priority.
///
/// # Errors
/// No memory, or no room for another thread.
pub fn spawn<T, F>(body: F) -> Result<JoinHandle<T>, Error>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    Builder::new().spawn(body)
}

/// Waits at least so long.
pub fn sleep(duration: Duration) {
    time::sleep(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
}

/// Lets another thread of the same priority run on this CPU, if one is ready.
pub fn yield_now() {
    // Nothing can go wrong with it.
    let _ = syscall::yield_now();
}

/// A thread's number, which no other thread has while the system runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(u64);

impl ThreadId {
    /// As the kernel and the profiler have it.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The calling thread, or what is known of it.
#[derive(Clone, Debug)]
pub struct Thread(ThreadId);

impl Thread {
    /// Its number.
    #[must_use]
    pub const fn id(&self) -> ThreadId {
        self.0
    }
}

/// The calling thread. Costs one system call.
#[must_use]
pub fn current() -> Thread {
    // The kernel always knows the caller.
    let id = syscall::thread_info(Handle::NONE).map_or(0, |(id, _, _)| id);
    Thread(ThreadId(id))
}
