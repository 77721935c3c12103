//! Values that are made once, by the first thread that wants them.

use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use super::Mutex;

/// A value that is made once and then only read. Reading one that is there costs a load.
pub struct OnceLock<T> {
    is_set: AtomicBool,
    making: Mutex<()>,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written once, by who holds the lock, before `is_set`; after it there are only shared references, and
// the thread that drops it may be another than the one that made it.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// Without a value.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            is_set: AtomicBool::new(false),
            making: Mutex::new(()),
            value: UnsafeCell::new(None),
        }
    }

    /// The value, if it has been made.
    pub fn get(&self) -> Option<&T> {
        if !self.is_set.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: it is set, so nobody writes any more.
        unsafe { &*self.value.get() }.as_ref()
    }

    /// Sets the value.
    ///
    /// # Errors
    /// The value given, if there is one already.
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut given = Some(value);
        self.make(|| given.take());
        given.map_or(Ok(()), Err)
    }

    /// The value; `make` makes it if there is none. Other threads that want it wait meanwhile. A `make` that wants the value
    /// itself waits for ever.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.make(|| Some(make()));
        self.get().expect("it has just been made, if not before")
    }

    fn make(&self, make: impl FnOnce() -> Option<T>) {
        if self.is_set.load(Ordering::Acquire) {
            return;
        }
        let _making = self.making.lock();
        if !self.is_set.load(Ordering::Relaxed) {
            let made = make();
            // SAFETY: it is not set, so nobody reads, and this thread holds the lock.
            unsafe { *self.value.get() = made }
            self.is_set.store(true, Ordering::Release);
        }
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceLock").field(&self.get()).finish()
    }
}

/// Work that is done once.
#[derive(Debug, Default)]
pub struct Once(OnceLock<()>);

impl Once {
    /// Not done yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }
    /// Does the work if nobody has, and waits for who is at it. A `work` that calls this itself waits for ever.
    pub fn call_once(&self, work: impl FnOnce()) {
        self.0.get_or_init(work);
    }
    /// Whether it is done.
    pub fn is_completed(&self) -> bool {
        self.0.get().is_some()
    }
}
