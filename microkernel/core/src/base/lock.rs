//! Fair locks with a written order. A CPU takes locks only in the order of [`rank`], at most one of each rank; debug
//! builds check every acquisition. Hold times are bounded, so that waiting, with interrupts off, is bounded too.

use super::cpu::Cpu;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};
use spin::mutex::TicketMutex;

/// The order in which locks are taken, lowest first.
pub mod rank {
    /// An endpoint's queues.
    pub const ENDPOINT: u8 = 1;
    /// A notification's bits and waiters.
    pub const NOTIFICATION: u8 = 2;
    /// A process's address space: regions and page tables.
    pub const SPACE: u8 = 3;
    /// A process's handle table.
    pub const HANDLES: u8 = 4;
    /// A process's list of threads.
    pub const THREADS: u8 = 5;
    /// A memory object's frame list.
    pub const MEMORY: u8 = 6;
    /// A CPU's run queue.
    pub const RUN_QUEUE: u8 = 7;
    /// A CPU's timer queue.
    pub const TIMERS: u8 = 8;
    /// Interrupt lines.
    pub const INTERRUPTS: u8 = 9;
    /// Threads that wait for translations to be flushed.
    pub const SHOOTDOWN: u8 = 10;
    /// The queue of deferred work.
    pub const WORK: u8 = 11;
    /// The profiling driver's control.
    pub const PROFILER: u8 = 12;
    /// Whom the profiling driver wakes.
    pub const WATCHER: u8 = 16;
    /// The free list of a pool.
    pub const POOL: u8 = 13;
    /// The frame allocator.
    pub const FRAMES: u8 = 14;
    /// The kernel log.
    pub const LOG: u8 = 15;
}

/// A fair lock of rank `RANK`.
#[derive(Debug)]
pub struct Lock<T, const RANK: u8>(TicketMutex<T>);

impl<T, const RANK: u8> Lock<T, RANK> {
    /// An unlocked lock.
    pub const fn new(value: T) -> Self {
        Self(TicketMutex::new(value))
    }
    /// Waits for its turn, then holds the lock until the guard is dropped.
    pub fn lock<'a>(&'a self, cpu: &'a Cpu) -> Guard<'a, T, RANK> {
        if cfg!(debug_assertions) {
            cpu.enter_rank(RANK);
        }
        Guard {
            cpu,
            inner: self.0.lock(),
        }
    }
    /// Takes the lock if it is free, in any order: who does not wait cannot deadlock. For a panic, in which nobody may be left to
    /// give it back.
    pub fn try_lock(&self) -> Option<impl DerefMut<Target = T> + '_> {
        self.0.try_lock()
    }
}

/// Holds a [`Lock`].
pub struct Guard<'a, T, const RANK: u8> {
    cpu: &'a Cpu,
    inner: spin::mutex::TicketMutexGuard<'a, T>,
}

impl<T, const RANK: u8> Deref for Guard<'_, T, RANK> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T, const RANK: u8> DerefMut for Guard<'_, T, RANK> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T, const RANK: u8> Drop for Guard<'_, T, RANK> {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            self.cpu.leave_rank(RANK);
        }
    }
}

/// What a value shows of itself to who does not hold its lock.
pub trait Glance {
    /// A word; 0 when there is nothing to lock it for.
    fn glance(&self) -> u32;
}

/// A [`Lock`] that shows from outside whether there is anything to take it for: a CPU that finds nothing waits for nobody.
#[derive(Debug)]
pub struct Shown<T: Glance, const RANK: u8> {
    lock: Lock<T, RANK>,
    shown: AtomicU32,
}

impl<T: Glance, const RANK: u8> Shown<T, RANK> {
    /// An unlocked lock on a value that shows 0.
    pub const fn new(value: T) -> Self {
        Self {
            lock: Lock::new(value),
            shown: AtomicU32::new(0),
        }
    }
    /// As [`Lock::lock`].
    pub fn lock<'a>(&'a self, cpu: &'a Cpu) -> ShownGuard<'a, T, RANK> {
        ShownGuard {
            shown: &self.shown,
            guard: self.lock.lock(cpu),
        }
    }
    /// As [`Lock::lock`] if nobody holds it or waits for it, else `None`: for what somebody else does as well, or the next look.
    pub fn try_lock<'a>(&'a self, cpu: &'a Cpu) -> Option<ShownGuard<'a, T, RANK>> {
        let inner = self.lock.0.try_lock()?;
        if cfg!(debug_assertions) {
            cpu.enter_rank(RANK);
        }
        Some(ShownGuard {
            shown: &self.shown,
            guard: Guard { cpu, inner },
        })
    }
    /// What the value showed when its lock was last given back. Whoever must not miss a change passes a fence between what he
    /// announced and this, as whoever makes the change does between giving the lock back and looking for announcements.
    #[must_use]
    pub fn glance(&self) -> u32 {
        self.shown.load(Ordering::Relaxed)
    }
}

/// Holds a [`Shown`].
pub struct ShownGuard<'a, T: Glance, const RANK: u8> {
    shown: &'a AtomicU32,
    guard: Guard<'a, T, RANK>,
}

impl<T: Glance, const RANK: u8> Deref for ShownGuard<'_, T, RANK> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: Glance, const RANK: u8> DerefMut for ShownGuard<'_, T, RANK> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: Glance, const RANK: u8> Drop for ShownGuard<'_, T, RANK> {
    fn drop(&mut self) {
        // Still under the lock: what is shown is in the order of the holders.
        self.shown.store(self.guard.glance(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::cpu::CpuId;
    use super::*;

    #[test]
    fn ranks_are_taken_upwards_and_given_back() {
        let cpu = Cpu::new(CpuId(0));
        let (low, high) = (Lock::<_, 1>::new(1), Lock::<_, 2>::new(2));
        {
            let a = low.lock(&cpu);
            let b = high.lock(&cpu);
            assert_eq!(*a + *b, 3);
        }
        assert!(cpu.holds_nothing());
        drop(high.lock(&cpu));
        drop(low.lock(&cpu));
    }

    impl Glance for u32 {
        fn glance(&self) -> u32 {
            *self
        }
    }

    #[test]
    fn a_glance_sees_what_the_last_holder_left() {
        let cpu = Cpu::new(CpuId(0));
        let shown = Shown::<_, 1>::new(0);
        assert_eq!(shown.glance(), 0);
        {
            let mut held = shown.lock(&cpu);
            *held = 7;
            assert_eq!(shown.glance(), 0);
        }
        assert_eq!(shown.glance(), 7);
        assert!(cpu.holds_nothing());
    }

    #[test]
    fn who_only_tries_does_not_wait() {
        let (cpu, other) = (Cpu::new(CpuId(0)), Cpu::new(CpuId(1)));
        let shown = Shown::<_, 1>::new(0);
        {
            let mut held = shown.try_lock(&cpu).expect("nobody holds it");
            *held = 7;
            assert!(shown.try_lock(&other).is_none());
            assert!(other.holds_nothing() && !cpu.holds_nothing());
        }
        assert_eq!(shown.glance(), 7);
        assert!(cpu.holds_nothing() && shown.try_lock(&other).is_some());
    }

    #[test]
    #[should_panic(expected = "lock order")]
    fn a_lower_rank_is_refused() {
        let cpu = Cpu::new(CpuId(0));
        let (low, high) = (Lock::<_, 1>::new(()), Lock::<_, 2>::new(()));
        let _high = high.lock(&cpu);
        let _low = low.lock(&cpu);
    }
}
