//! Threads of the host use what threads of the machine will, through the host's `park`, which fails if a wake comes twice.

use super::mpsc::{self, RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};
use super::{Condvar, Mutex, Once, OnceLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// So long that only a thread that hangs needs it.
const FOREVER: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_millis(2);

#[test]
fn a_mutex_lets_one_in_at_a_time() {
    const THREADS: usize = 8;
    const ROUNDS: usize = 2000;
    let total = Mutex::new((0, 0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut both = total.lock();
                    both.0 += 1;
                    thread::yield_now();
                    both.1 += 1;
                    assert_eq!(both.0, both.1);
                }
            });
        }
    });
    assert_eq!(total.into_inner(), (THREADS * ROUNDS, THREADS * ROUNDS));
}

#[test]
fn try_lock_does_not_wait() {
    let mutex = Mutex::new(1);
    let guard = mutex.lock();
    assert!(mutex.try_lock().is_none());
    assert_eq!(format!("{mutex:?}"), "Mutex(<locked>)");
    drop(guard);
    assert_eq!(mutex.try_lock().as_deref(), Some(&1));
    assert_eq!(format!("{mutex:?}"), "Mutex(1)");
}

#[test]
fn notify_one_wakes_one_and_in_order() {
    let (turn, changed) = (Mutex::new((0, Vec::new())), Condvar::new());
    thread::scope(|scope| {
        for number in 0..4 {
            let mut state = turn.lock();
            let before = state.0;
            scope.spawn({
                let (turn, changed) = (&turn, &changed);
                move || {
                    let mut state = turn.lock();
                    state.0 += 1;
                    changed.wait(state).1.push(number);
                }
            });
            // The next one starts when this one waits: it unlocks by waiting.
            while state.0 == before {
                drop(state);
                thread::yield_now();
                state = turn.lock();
            }
        }
        for number in 0..4 {
            assert_eq!(turn.lock().1, (0..number).collect::<Vec<_>>());
            changed.notify_one();
            while turn.lock().1.len() == number {
                thread::yield_now();
            }
        }
        // Nobody is left; this is not kept for who comes later.
        changed.notify_one();
        let (_, result) = changed.wait_timeout(turn.lock(), SHORT);
        assert!(result.timed_out());
    });
}

#[test]
fn notify_all_wakes_all() {
    let (open, changed) = (Mutex::new(false), Condvar::new());
    let through = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                drop(changed.wait_while(open.lock(), |open| !*open));
                through.fetch_add(1, Ordering::Relaxed);
            });
        }
        *open.lock() = true;
        changed.notify_all();
    });
    assert_eq!(through.into_inner(), 6);
}

/// Each notify is for one thread: one that timed out at the same moment has taken it, or left it for another.
#[test]
fn no_notify_is_lost_to_a_timeout() {
    const TOKENS: usize = 3000;
    let (tokens, changed) = (Mutex::new(0), Condvar::new());
    let taken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for timeout in [Duration::ZERO, Duration::from_micros(20), FOREVER] {
            scope.spawn({
                let (tokens, changed, taken) = (&tokens, &changed, &taken);
                move || {
                    while taken.load(Ordering::Relaxed) < TOKENS {
                        let (mut guard, result) =
                            changed.wait_timeout_while(tokens.lock(), timeout, |left| *left == 0);
                        assert_eq!(result.timed_out(), *guard == 0);
                        if *guard > 0 {
                            *guard -= 1;
                            if taken.fetch_add(1, Ordering::Relaxed) + 1 >= TOKENS {
                                // For those that wait for ever.
                                *guard = 10;
                                changed.notify_all();
                            }
                        }
                    }
                }
            });
        }
        for _ in 0..TOKENS {
            *tokens.lock() += 1;
            changed.notify_one();
        }
    });
    assert!(taken.into_inner() >= TOKENS);
}

#[test]
fn a_value_is_made_once() {
    let (value, made, once) = (OnceLock::new(), AtomicUsize::new(0), Once::new());
    assert_eq!(value.get(), None);
    thread::scope(|scope| {
        for number in 0..8 {
            let (value, made, once) = (&value, &made, &once);
            scope.spawn(move || {
                let seen = *value.get_or_init(|| {
                    made.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(SHORT);
                    number
                });
                assert_eq!(value.get(), Some(&seen));
                once.call_once(|| {
                    made.fetch_add(10, Ordering::Relaxed);
                });
                assert!(once.is_completed());
            });
        }
    });
    assert_eq!(made.into_inner(), 11);
    assert_eq!(value.set(9), Err(9));
    let fresh = OnceLock::new();
    assert_eq!((fresh.set(9), fresh.get()), (Ok(()), Some(&9)));
}

#[test]
fn values_arrive_in_the_order_of_each_sender() {
    for bound in [None, Some(0), Some(1), Some(5)] {
        const SENDERS: usize = 3;
        const EACH: usize = 400;
        let mut next = [0; SENDERS];
        let mut check = |receiver: mpsc::Receiver<(usize, usize)>| {
            for (sender, number) in &receiver {
                assert_eq!(number, next[sender], "bound {bound:?}");
                next[sender] += 1;
            }
            assert_eq!(receiver.recv(), Err(RecvError));
        };
        thread::scope(|scope| match bound {
            None => {
                let (sender, receiver) = mpsc::channel();
                for number in 0..SENDERS {
                    let sender = sender.clone();
                    scope.spawn(move || (0..EACH).for_each(|n| sender.send((number, n)).unwrap()));
                }
                drop(sender);
                check(receiver);
            }
            Some(bound) => {
                let (sender, receiver) = mpsc::sync_channel(bound);
                for number in 0..SENDERS {
                    let sender = sender.clone();
                    scope.spawn(move || (0..EACH).for_each(|n| sender.send((number, n)).unwrap()));
                }
                drop(sender);
                check(receiver);
            }
        });
        assert_eq!(next, [EACH; SENDERS]);
    }
}

#[test]
fn a_bounded_channel_is_full_and_empty() {
    let (sender, receiver) = mpsc::sync_channel(2);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(receiver.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
    assert_eq!((sender.send(1), sender.try_send(2)), (Ok(()), Ok(())));
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 2]);
    sender.send(4).unwrap();
    drop(sender);
    // What was sent before the sender left is still received.
    assert_eq!(receiver.recv_timeout(FOREVER), Ok(4));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(
        receiver.recv_timeout(FOREVER),
        Err(RecvTimeoutError::Disconnected)
    );
}

#[test]
fn a_channel_without_room_hands_over() {
    let (sender, receiver) = mpsc::sync_channel(0);
    assert_eq!(sender.try_send(1), Err(TrySendError::Full(1)));
    let returned = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            sender.send(1).unwrap();
            returned.fetch_add(1, Ordering::Relaxed);
            assert_eq!(sender.send(2), Err(SendError(2)));
        });
        // The value is there to be looked for, and its sender waits until it was received.
        let start = Instant::now();
        while receiver.try_recv().is_err() && start.elapsed() < FOREVER {
            assert_eq!(returned.load(Ordering::Relaxed), 0);
        }
        while returned.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        drop(receiver);
    });
}

#[test]
fn who_waits_sees_the_other_side_leave() {
    let (sender, receiver) = mpsc::sync_channel::<Arc<()>>(1);
    let value = Arc::new(());
    thread::scope(|scope| {
        scope.spawn(|| {
            sender.send(Arc::clone(&value)).unwrap();
            // There is no room, and never will be.
            sender.send(Arc::clone(&value)).unwrap_err();
        });
        while Arc::strong_count(&value) < 3 {
            thread::yield_now();
        }
        drop(receiver);
    });
    assert_eq!(Arc::strong_count(&value), 1, "a value stayed in the queue");

    let (sender, receiver) = mpsc::channel::<u8>();
    thread::scope(|scope| {
        scope.spawn(move || assert_eq!(receiver.recv(), Err(RecvError)));
        drop(sender);
    });
}
