//! A lock without data: one word, which says whether it is held and who waits for it.
//!
//! The word is the address of the newest of those that wait, each of which names the next older one, and its lowest bit says that
//! the lock is held. They are on the stacks of the threads that wait, so nothing is allocated, and the heap's own lock is one
//! of these. A thread adds itself in front by an exchange; only who holds the lock takes one out, at the end.
//!
//! Who releases the lock wakes the oldest waiter, which then tries again: the lock is not handed over. So a thread that comes
//! just then may be faster, and a lock that is taken often is not passed on with a switch of threads each time. Where one thread takes it
//! again and again, others could come too late for ever: there the holder hands it over instead, and the oldest waiter holds it when it
//! is woken.

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

#[cfg(not(loom))]
use core::sync::atomic::{AtomicBool, AtomicPtr};
#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicPtr};

use crate::park::{self, Reason, Waiter};

/// Set in the word while the lock is held.
const HELD: usize = 1;

/// A thread that waits, on its own stack.
struct Node {
    waiter: Waiter,
    /// Who waits longer. Its own thread's to write until the node is in the list, then the holder's.
    older: AtomicPtr<Node>,
    /// The lock was handed over to it.
    holds: AtomicBool,
}

/// The lock.
#[derive(Debug)]
pub struct RawLock(AtomicPtr<Node>);

fn is_held(word: *mut Node) -> bool {
    word.addr() & HELD != 0
}

fn held(word: *mut Node) -> *mut Node {
    word.map_addr(|address| address | HELD)
}

fn free(word: *mut Node) -> *mut Node {
    word.map_addr(|address| address & !HELD)
}

impl RawLock {
    /// A lock that nobody holds.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Takes the lock if nobody holds it; whether it did.
    pub fn try_lock(&self) -> bool {
        let mut word = self.0.load(Relaxed);
        while !is_held(word) {
            match self
                .0
                .compare_exchange_weak(word, held(word), Acquire, Relaxed)
            {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Takes the lock, and waits for it if another thread holds it.
    pub fn lock(&self) {
        while !self.try_lock() && !self.wait() {}
    }

    /// Waits until woken by who released the lock; whether it was handed over. Returns at once if nobody holds it any more.
    #[cold]
    fn wait(&self) -> bool {
        let node = Node {
            waiter: Waiter::current(),
            older: AtomicPtr::new(ptr::null_mut()),
            holds: AtomicBool::new(false),
        };
        let mut word = self.0.load(Relaxed);
        while is_held(word) {
            node.older.store(free(word), Relaxed);
            let waited_for = held(ptr::from_ref(&node).cast_mut());
            match self
                .0
                .compare_exchange_weak(word, waited_for, Release, Relaxed)
            {
                // The node stays here until it was taken out of the list, which is before the wake.
                Ok(_) => {
                    park::wait(Reason::Lock);
                    return node.holds.load(Acquire);
                }
                Err(now) => word = now,
            }
        }
        false
    }

    /// Releases the lock, and wakes who has waited for it longest.
    ///
    /// # Safety
    /// The caller holds the lock.
    pub unsafe fn unlock(&self) {
        if self.release_unwanted() {
            return;
        }
        // SAFETY: the caller holds the lock, and the word is more than `HELD`, so somebody waits.
        let oldest = unsafe { self.take_oldest(false) };
        let mut word = self.0.load(Relaxed);
        while let Err(now) = self
            .0
            .compare_exchange_weak(word, free(word), Release, Relaxed)
        {
            word = now;
        }
        oldest.wake(Reason::Lock);
    }

    /// Releases the lock to who has waited for it longest, who holds it from now on; to nobody if nobody waits.
    ///
    /// # Safety
    /// The caller holds the lock.
    pub unsafe fn hand_over(&self) {
        if !self.release_unwanted() {
            // SAFETY: as in `unlock`.
            let oldest = unsafe { self.take_oldest(true) };
            oldest.wake(Reason::Lock);
        }
    }

    /// Releases the lock, which the caller holds, if nobody waits for it; whether it did.
    fn release_unwanted(&self) -> bool {
        let only_held = held(ptr::null_mut());
        self.0
            .compare_exchange(only_held, ptr::null_mut(), Release, Relaxed)
            .is_ok()
    }

    /// Takes the oldest waiter out of the list, and says whether it holds the lock when it is woken.
    ///
    /// # Safety
    /// The caller holds the lock, and somebody waits.
    unsafe fn take_oldest(&self, holds: bool) -> Waiter {
        loop {
            // Every node was published by an exchange of this word, so this load makes all of them visible.
            let word = self.0.load(Acquire);
            let newest = free(word);
            let (mut newer, mut oldest) = (ptr::null_mut(), newest);
            loop {
                // SAFETY: a node in the list lives until its thread is woken, which is after the holder took it out; and the
                // holder is here.
                let older = unsafe { &*oldest }.older.load(Relaxed);
                if older.is_null() {
                    break;
                }
                (newer, oldest) = (oldest, older);
            }
            // SAFETY: as above; it is null if the oldest is the newest.
            let taken = match unsafe { newer.as_ref() } {
                Some(newer) => {
                    newer.older.store(ptr::null_mut(), Relaxed);
                    true
                }
                // Fails if a newer one came meanwhile.
                None => self
                    .0
                    .compare_exchange(word, held(ptr::null_mut()), AcqRel, Relaxed)
                    .is_ok(),
            };
            if taken {
                // SAFETY: as above; its thread is not woken yet.
                let oldest = unsafe { &*oldest };
                oldest.holds.store(holds, Release);
                return oldest.waiter.taken();
            }
        }
    }
}

#[cfg(all(test, loom))]
mod races {
    //! The lock under every interleaving. Run with `RUSTFLAGS="--cfg loom" cargo test --release -p sysroot --lib races`.

    use super::RawLock;
    use loom::cell::UnsafeCell;
    use loom::model::Builder;
    use loom::sync::Arc;
    use loom::thread;

    /// Loom sees an access to the count that is not ordered by the lock, and a thread that is never woken.
    struct Counter {
        lock: RawLock,
        count: UnsafeCell<u32>,
        /// Releases by handing over.
        is_fair: bool,
    }

    impl Counter {
        fn add(&self) {
            self.lock.lock();
            // SAFETY: the lock is held.
            self.count.with_mut(|count| unsafe { *count += 1 });
            if self.is_fair {
                // SAFETY: it was locked above.
                unsafe { self.lock.hand_over() }
            } else {
                // SAFETY: it was locked above.
                unsafe { self.lock.unlock() }
            }
        }
    }

    /// Interleavings with at most three switches away from a thread that could go on: all that a lost wake needs.
    const PREEMPTIONS: usize = 3;

    fn counted(threads: usize, rounds: u32, is_fair: bool) {
        let mut model = Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(move || {
            let counter = Arc::new(Counter {
                lock: RawLock::new(),
                count: UnsafeCell::new(0),
                is_fair,
            });
            let others: Vec<_> = (1..threads)
                .map(|_| {
                    let counter = Arc::clone(&counter);
                    thread::spawn(move || (0..rounds).for_each(|_| counter.add()))
                })
                .collect();
            (0..rounds).for_each(|_| counter.add());
            for other in others {
                other.join().unwrap();
            }
            // SAFETY: the other threads have ended.
            let count = counter.count.with(|count| unsafe { *count });
            assert_eq!(count, threads as u32 * rounds);
            assert!(counter.lock.try_lock(), "it is still held");
        });
    }

    #[test]
    fn two_threads_take_turns() {
        counted(2, 2, false);
    }

    #[test]
    fn two_threads_hand_over() {
        counted(2, 2, true);
    }

    #[test]
    fn three_threads_wait_for_each_other() {
        counted(3, 1, false);
    }

    #[test]
    fn three_threads_hand_over() {
        counted(3, 1, true);
    }

    /// Who waits when the lock is handed over has it before the one that hands it over has it again.
    #[test]
    fn who_waits_is_next() {
        let mut model = Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(|| {
            let counter = Arc::new(Counter {
                lock: RawLock::new(),
                count: UnsafeCell::new(0),
                is_fair: true,
            });
            counter.lock.lock();
            let other = {
                let counter = Arc::clone(&counter);
                thread::spawn(move || counter.add())
            };
            thread::yield_now();
            let waits = !super::free(counter.lock.0.load(super::Relaxed)).is_null();
            // SAFETY: it was locked above.
            unsafe { counter.lock.hand_over() }
            counter.lock.lock();
            // SAFETY: the lock is held.
            let count = counter.count.with(|count| unsafe { *count });
            assert!(count == 1 || !waits, "it waited, and was passed over");
            // SAFETY: it was locked above.
            unsafe { counter.lock.hand_over() }
            other.join().unwrap();
        });
    }
}
