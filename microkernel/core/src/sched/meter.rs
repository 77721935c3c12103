//! Whose a CPU's time is. All of it is charged to a thread, or to idling, by the CPU itself and at each switch; what has passed since
//! belongs to who is current. Another CPU that asks gets both as they were at one moment.
//!
//! # Ordering
//! A charge is between two stores to `since`: 0, then a release fence; the counts and the current thread; then the new time, with
//! release. A look is between two loads of it: with acquire; the counts; then an acquire fence, and again. A time that is seen with
//! acquire shows the charge that ended with it whole; if anything of a later charge was seen, the fences order that one's 0 before
//! the second load, which then differs. Two charges at the same TSC move no time between them.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// One CPU's time, in TSC ticks. By default it has not started.
#[derive(Debug, Default)]
pub struct Meter {
    /// From when on time is not charged yet; 0 while it is being charged.
    since: AtomicU64,
    idle: AtomicU64,
    busy: AtomicU64,
    started: AtomicU64,
}

/// What has been charged, and from when on nothing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged {
    /// Without a thread.
    pub idle: u64,
    /// In threads.
    pub busy: u64,
    /// When counting began.
    pub started: u64,
    /// Until when it is charged.
    pub until: u64,
}

impl Meter {
    /// Begins to count.
    pub fn start(&self, now: u64) {
        self.started.store(now, Ordering::Relaxed);
        self.since.store(now, Ordering::Release);
    }

    /// Charges the time until now, to idling or to a thread, whose own count `switch` is given it for. `switch` also makes current
    /// who has the time from now on.
    pub fn charge(&self, now: u64, idle: bool, switch: impl FnOnce(u64)) {
        let spent = now.saturating_sub(self.since.load(Ordering::Relaxed));
        self.since.store(0, Ordering::Relaxed);
        // None of what follows may be seen before it is seen that it is being changed.
        fence(Ordering::Release);
        let count = if idle { &self.idle } else { &self.busy };
        let sum = count.load(Ordering::Relaxed).wrapping_add(spent);
        count.store(sum, Ordering::Relaxed);
        switch(spent);
        self.since.store(now, Ordering::Release);
    }

    /// What has been charged, and what `look` sees, at one moment; `None` if a charge came between, or is on its way.
    pub fn look<T>(&self, look: impl FnOnce() -> T) -> Option<(Charged, T)> {
        let until = self.since.load(Ordering::Acquire);
        let charged = Charged {
            idle: self.idle.load(Ordering::Relaxed),
            busy: self.busy.load(Ordering::Relaxed),
            started: self.started.load(Ordering::Relaxed),
            until,
        };
        let seen = look();
        // No load of the above may be satisfied after the second look.
        fence(Ordering::Acquire);
        let same = until != 0 && self.since.load(Ordering::Relaxed) == until;
        same.then_some((charged, seen))
    }
}

#[cfg(all(test, loom))]
mod races;
