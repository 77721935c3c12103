//! Threads begin, end, and leave nothing behind.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use core::time::Duration;

use ipc::abi::info::ThreadState;
use ipc::abi::{Error, Handle};
use sysroot::sync::mpsc;
use sysroot::thread::{self, Builder};
use sysroot::{record, syscall, time};

/// More than a process may have threads at once.
const MANY: usize = 200;

/// Pages charged to this program.
fn pages() -> u64 {
    record::process_status(Handle::NONE).unwrap().pages
}

/// Waits until no more pages are charged than these, and does something before each look. Freed pages come back after a grace period, and
/// those that leaked never.
fn settle(pages_before: u64, each: impl Fn()) {
    let deadline = time::after(60_000 * time::MILLISECOND);
    while pages() > pages_before {
        assert!(
            time::now() < deadline,
            "{} pages, of {pages_before} at first",
            pages()
        );
        thread::sleep(Duration::from_millis(1));
        each();
    }
}

/// Results arrive, whether the thread ended before the join or after, and all memory is given back.
pub fn join() {
    let own = thread::current().id();
    let round = |round| {
        let handle = Builder::new()
            .stack_size(8192)
            .spawn(move || (round, thread::current().id()))
            .unwrap();
        if round % 2 == 0 {
            while !handle.is_finished() {
                thread::yield_now();
            }
        }
        let (result, id) = handle.join().unwrap();
        assert!(result == round && id != own);
    };
    // The first makes the heap and the page tables.
    round(0);
    let before = pages();
    (1..MANY).for_each(round);
    settle(before, || ());
}

/// Threads that nobody joins go on, and their memory is given back when others are started.
pub fn detach() {
    let (sender, receiver) = mpsc::channel();
    let round = |round| {
        let sender = sender.clone();
        drop(thread::spawn(move || sender.send(round).unwrap()).unwrap());
        assert_eq!(receiver.recv(), Ok(round));
    };
    round(0);
    let before = pages();
    (1..MANY).for_each(round);
    // The memory of the last one or two goes with the next that is started.
    settle(before, || thread::spawn(|| {}).unwrap().join().unwrap());
}

/// Threads borrow from their starter, which waits for those that it does not join.
pub fn scope() {
    let values: Vec<usize> = (0..100).collect();
    let sum = AtomicUsize::new(0);
    let joined = thread::scope(|scope| {
        for part in values.chunks(25) {
            let add = || {
                thread::sleep(Duration::from_millis(3));
                sum.fetch_add(part.iter().sum(), Relaxed);
            };
            // Not joined: the scope is.
            scope.spawn(add).unwrap();
        }
        scope.spawn(|| values.len()).unwrap().join().unwrap()
    });
    assert_eq!((joined, sum.into_inner()), (100, 4950));
}

/// Where no further thread can be had, that is an error; those that there are go on, and what they had can be had again.
pub fn limit() {
    for _ in 0..2 {
        let (sender, receiver) = mpsc::channel();
        let mut started = Vec::new();
        let error = loop {
            let sender = sender.clone();
            match Builder::new()
                .stack_size(4096)
                .spawn(move || sender.send(()))
            {
                Ok(handle) => started.push(handle),
                Err(error) => break error,
            }
            assert!(started.len() < 1000, "there is no limit");
        };
        assert_eq!(error, Error::LimitReached);
        drop(sender);
        assert_eq!(receiver.iter().count(), started.len());
        assert!(started.len() > 8, "only {}", started.len());
        for handle in started {
            assert_eq!(handle.join(), Ok(Ok(())));
        }
    }
}

/// Who sleeps for ever blocks, and takes no time from others.
pub fn sleep() {
    let sleeper = thread::spawn(|| thread::sleep(Duration::MAX)).unwrap();
    let deadline = time::after(60_000 * time::MILLISECOND);
    let state = || syscall::thread_info(sleeper.handle()).unwrap().1;
    while state() != ThreadState::Sleeping as u64 {
        assert!(time::now() < deadline, "it does not block");
        thread::yield_now();
    }
}
