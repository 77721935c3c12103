//! Waiting on the host, for the tests: bits as a notification has them, and a check that no wake comes twice.

use super::Reason;

#[cfg(loom)]
use loom::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread_local,
};
#[cfg(not(loom))]
use std::{
    sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard},
    thread_local,
    time::{Duration, Instant},
};

#[derive(Debug)]
struct Parker {
    bits: Mutex<u64>,
    set: Condvar,
}

thread_local! {
    static OWN: Arc<Parker> = Arc::new(Parker { bits: Mutex::new(0), set: Condvar::new() });
}

impl Parker {
    fn bits(&self) -> MutexGuard<'_, u64> {
        self.bits.lock().unwrap()
    }
}

/// See `notification`.
#[derive(Debug)]
pub struct Waiter(Arc<Parker>);

impl Waiter {
    pub fn current() -> Self {
        Self(OWN.with(Arc::clone))
    }
    pub fn taken(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
    pub fn wake(self, reason: Reason) {
        let mut bits = self.0.bits();
        assert_eq!(*bits & reason as u64, 0, "woken twice");
        *bits |= reason as u64;
        self.0.set.notify_one();
    }
}

pub fn wait(reason: Reason) {
    let own = Waiter::current().0;
    let mut bits = own.bits();
    while *bits & reason as u64 == 0 {
        bits = own.set.wait(bits).unwrap();
    }
    *bits &= !(reason as u64);
}

#[cfg(not(loom))]
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

#[cfg(not(loom))]
pub fn wait_until(reason: Reason, deadline: u64) -> bool {
    let own = Waiter::current().0;
    let mut bits = own.bits();
    while *bits & reason as u64 == 0 {
        let left = Duration::from_nanos(deadline).saturating_sub(START.elapsed());
        if left.is_zero() {
            return false;
        }
        bits = own.set.wait_timeout(bits, left).unwrap().0;
    }
    *bits &= !(reason as u64);
    true
}

#[cfg(not(loom))]
pub fn deadline(after: Duration) -> u64 {
    u64::try_from((START.elapsed() + after).as_nanos()).unwrap_or(u64::MAX)
}
