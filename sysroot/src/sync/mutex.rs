//! Mutual exclusion: a value behind a lock.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};

use crate::lock::RawLock;

/// A value that one thread at a time can reach. See [`crate::sync`] for cost, fairness and priority.
pub struct Mutex<T: ?Sized> {
    lock: RawLock,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lets one thread at a time reach the value, which that thread may take out and drop.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

/// The right to the value; dropping it unlocks.
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// A guard stays with the thread that locked, as in `std`.
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives a shared reference to the value and nothing else.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self {
            lock: RawLock::new(),
            value: UnsafeCell::new(value),
        }
    }
    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until no other thread has it, and locks it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.lock.lock();
        self.guard()
    }
    /// Locks it if no thread has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.lock.try_lock().then(|| self.guard())
    }
    /// The value, which nobody else can reach meanwhile.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
    /// For who has just taken the lock.
    const fn guard(&self) -> MutexGuard<'_, T> {
        MutexGuard {
            mutex: self,
            not_send: PhantomData,
        }
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Unlocks it for who has waited longest, who has it from then on; for anybody if nobody waits. Dropping the guard is cheaper, but
    /// a thread that locks again at once may then be faster than those that wait, each time.
    pub fn hand_over(guard: Self) {
        let guard = ManuallyDrop::new(guard);
        // SAFETY: as in `drop`, which is not run for this guard.
        unsafe { guard.mutex.lock.hand_over() }
    }
    /// What it guards, to lock it again.
    pub(super) const fn mutex(&self) -> &'a Mutex<T> {
        self.mutex
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock while the guard lives, and borrows of the guard bound those of the value.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: a guard is made by who has just locked, and there is one for each time.
        unsafe { self.mutex.lock.unlock() }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_tuple("Mutex").field(&&*guard).finish(),
            None => f.write_str("Mutex(<locked>)"),
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
