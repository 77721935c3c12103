//! Threads that may borrow what their starter has: they all end before the scope does.

use alloc::sync::Arc;
use core::marker::PhantomData;

use ipc::abi::{Error, Handle};

use super::{Builder, Running};
use crate::sync::{Condvar, Mutex};

/// Where threads are started that end before it does. See [`scope`].
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    bodies: Arc<Bodies>,
    /// Invariant, so that neither lifetime can be made shorter.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// How many of a scope's threads still have what they borrowed.
#[derive(Debug)]
struct Bodies {
    count: Mutex<usize>,
    none: Condvar,
}

impl Bodies {
    fn end(&self) {
        let mut count = self.count.lock();
        *count -= 1;
        let is_last = *count == 0;
        drop(count);
        if is_last {
            self.none.notify_all();
        }
    }
}

/// Runs `body`, which may start threads in the scope, and waits until all of these have ended their work.
///
/// Nothing is unwound here, so the wait cannot be left out: a panic ends the program.
pub fn scope<'env, F, T>(body: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let scope = Scope {
        bodies: Arc::new(Bodies {
            count: Mutex::new(0),
            none: Condvar::new(),
        }),
        scope: PhantomData,
        env: PhantomData,
    };
    let result = body(&scope);
    let count = scope.bodies.count.lock();
    drop(scope.bodies.none.wait_while(count, |count| *count > 0));
    result
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread with a stack of [`STACK_BYTES`](super::STACK_BYTES) and the caller's priority.
    ///
    /// # Errors
    /// No memory, or no room for another thread.
    pub fn spawn<T, F>(&'scope self, body: F) -> Result<ScopedJoinHandle<'scope, T>, Error>
    where
        T: Send + 'scope,
        F: FnOnce() -> T + Send + 'scope,
    {
        Builder::new().spawn_scoped(self, body)
    }
}

impl Builder {
    /// Starts a thread in a scope.
    ///
    /// # Errors
    /// No memory, or no room for another thread.
    pub fn spawn_scoped<'scope, T, F>(
        self,
        scope: &'scope Scope<'scope, '_>,
        body: F,
    ) -> Result<ScopedJoinHandle<'scope, T>, Error>
    where
        T: Send + 'scope,
        F: FnOnce() -> T + Send + 'scope,
    {
        *scope.bodies.count.lock() += 1;
        let bodies = Arc::clone(&scope.bodies);
        // SAFETY: what the body borrows outlives `'scope`, which ends after `scope` has waited for the thread's `end`; its
        // result is the handle's, which does not outlive `'scope` either, or is dropped before `end`.
        let running = unsafe { self.start(body, move || bodies.end()) };
        if running.is_err() {
            scope.bodies.end();
        }
        running.map(|running| ScopedJoinHandle {
            running,
            scope: PhantomData,
        })
    }
}

/// A thread in a scope. Dropped without `join`, the scope waits for it.
#[derive(Debug)]
pub struct ScopedJoinHandle<'scope, T> {
    running: Running<T>,
    scope: PhantomData<&'scope ()>,
}

impl<T> ScopedJoinHandle<'_, T> {
    /// The thread, to set its priority or look at its state.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.running.handle()
    }

    /// Whether `join` would not wait.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.running.is_finished()
    }

    /// Waits until the thread has ended, and gives what it returned.
    ///
    /// # Errors
    /// As for [`JoinHandle::join`](super::JoinHandle::join).
    pub fn join(self) -> Result<T, Error> {
        self.running.join()
    }
}
