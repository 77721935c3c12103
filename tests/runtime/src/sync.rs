//! Locks, conditions, channels and values that are made once.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use core::time::Duration;

use ipc::abi::Handle;
use sysroot::sync::{Condvar, Mutex, Once, OnceLock, mpsc};
use sysroot::{syscall, thread, time};

/// Enough that each CPU has more than one.
const THREADS: usize = 8;
const ROUNDS: usize = 500;
/// So long that only a thread that hangs needs it.
const FOREVER: Duration = Duration::from_secs(600);

/// Many threads, one at a time, which often have to wait.
pub fn mutex() {
    let total = Mutex::new((0, 0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let add = || {
                for round in 0..ROUNDS {
                    let mut both = total.lock();
                    both.0 += 1;
                    if round % 8 == 0 {
                        thread::yield_now();
                    }
                    both.1 += 1;
                    assert_eq!(both.0, both.1);
                }
            };
            scope.spawn(add).unwrap();
        }
    });
    assert_eq!(total.into_inner(), (THREADS * ROUNDS, THREADS * ROUNDS));
}

/// One that waits does not keep the holder from running, though it is of higher priority and there may be one CPU.
pub fn priority() {
    let (lock, is_held) = (Mutex::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let holder = || {
            syscall::thread_set(Handle::NONE, 1, u64::MAX).unwrap();
            let mut value = lock.lock();
            is_held.store(true, Relaxed);
            for _ in 0..100 {
                thread::yield_now();
                *value += 1;
            }
        };
        scope.spawn(holder).unwrap();
        while !is_held.load(Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(*lock.lock(), 100);
    });
}

/// Two threads take turns, each woken by the other.
pub fn condvar() {
    let (turn, changed) = (Mutex::new(0), Condvar::new());
    thread::scope(|scope| {
        for own in 0..2 {
            let (turn, changed) = (&turn, &changed);
            let play = move || {
                for _ in 0..ROUNDS {
                    let mut turn = changed.wait_while(turn.lock(), |turn| *turn % 2 != own);
                    *turn += 1;
                    drop(turn);
                    changed.notify_one();
                }
            };
            scope.spawn(play).unwrap();
        }
    });
    assert_eq!(turn.into_inner(), 2 * ROUNDS);
}

/// Waits end at their deadline and not before, and a notify that comes at the same moment is for somebody.
pub fn timeout() {
    let (left, changed) = (Mutex::new(0), Condvar::new());
    for millis in [0, 1, 7] {
        let timeout = Duration::from_millis(millis);
        let start = time::now();
        let (_, result) = changed.wait_timeout(left.lock(), timeout);
        assert!(result.timed_out());
        assert!(time::now() - start >= millis * time::MILLISECOND);
    }
    let taken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for timeout in [Duration::ZERO, Duration::from_micros(200), FOREVER] {
            let (left, changed, taken) = (&left, &changed, &taken);
            let take = move || {
                while taken.load(Relaxed) < ROUNDS {
                    let (mut left, result) =
                        changed.wait_timeout_while(left.lock(), timeout, |left| *left == 0);
                    assert_eq!(result.timed_out(), *left == 0);
                    if *left > 0 {
                        *left -= 1;
                        if taken.fetch_add(1, Relaxed) + 1 >= ROUNDS {
                            // For those that still wait.
                            *left = THREADS;
                            changed.notify_all();
                        }
                    }
                }
            };
            scope.spawn(take).unwrap();
        }
        for _ in 0..ROUNDS {
            *left.lock() += 1;
            changed.notify_one();
        }
    });
}

/// All that is sent arrives, in the order of each sender; the end is seen.
pub fn channel() {
    for bound in [0, 1, 16] {
        let (sender, receiver) = mpsc::sync_channel(bound);
        let mut next = [0; 3];
        for own in 0..next.len() {
            let sender = sender.clone();
            let send = move || (0..ROUNDS).for_each(|number| sender.send((own, number)).unwrap());
            thread::spawn(send).unwrap();
        }
        drop(sender);
        for (from, number) in &receiver {
            assert_eq!(number, next[from]);
            next[from] += 1;
        }
        assert_eq!(next, [ROUNDS; 3]);
    }
    let (sender, receiver) = mpsc::channel();
    let consumer = thread::spawn(move || receiver.into_iter().take(ROUNDS).sum::<usize>()).unwrap();
    let mut number = 0;
    // Until the receiver is gone.
    while sender.send(number).is_ok() {
        number += 1;
        thread::yield_now();
    }
    assert_eq!(consumer.join(), Ok((0..ROUNDS).sum()));
}

/// The first of many makes it, and the others wait for that.
pub fn once() {
    let (value, made, once) = (OnceLock::new(), AtomicUsize::new(0), Once::new());
    thread::scope(|scope| {
        for own in 0..THREADS {
            let (value, made, once) = (&value, &made, &once);
            let want = move || {
                let seen = *value.get_or_init(|| {
                    made.fetch_add(1, Relaxed);
                    thread::sleep(Duration::from_millis(2));
                    own
                });
                assert_eq!(value.get(), Some(&seen));
                once.call_once(|| _ = made.fetch_add(100, Relaxed));
                assert!(once.is_completed());
            };
            scope.spawn(want).unwrap();
        }
    });
    assert_eq!(made.into_inner(), 101);
}
