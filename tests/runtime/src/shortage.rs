//! A thread is started when there is too little of something: each step of the start fails in turn, is an error, and leaves
//! nothing behind.

use alloc::vec::Vec;
use core::hint::black_box;
use core::time::Duration;

use ipc::abi::{Error, Handle, Rights};
use sysroot::mapping::Mapping;
use sysroot::thread::{self, Builder};
use sysroot::{OwnedHandle, handle, record, syscall, time};

/// More than a process may have of anything but pages.
const MANY: usize = 1200;
/// More than a thread takes.
const ROOM_PAGES: u64 = 16;
/// Threads that are started and joined one after the other, in the end.
const THREADS: usize = 250;

/// Starts a thread, and gives the place that it was put at.
fn start() -> Result<usize, Error> {
    let body = || core::ptr::from_mut(black_box(&mut 0_u8)).addr();
    Builder::new().stack_size(16 * 1024).spawn(body)?.join()
}

/// Takes as many as there are.
fn take_all<T>(taken: &mut Vec<T>, take: &mut impl FnMut() -> Result<T, Error>) {
    while let Ok(one) = take() {
        assert!(taken.len() < MANY, "there is no limit");
        taken.push(one);
    }
}

/// Takes all of something, gives it back piece by piece until a thread can be started, and says how many starts failed.
fn without<T>(mut take: impl FnMut() -> Result<T, Error>) -> usize {
    let mut taken = Vec::with_capacity(MANY);
    // Kept free meanwhile, so that a start that fails is at the place of one that does not.
    let place = Mapping::create(ROOM_PAGES).unwrap();
    take_all(&mut taken, &mut take);
    drop(place);
    take_all(&mut taken, &mut take);
    let deadline = time::after(60_000 * time::MILLISECOND);
    let mut failed = 0;
    loop {
        let in_time = time::now() < deadline;
        match start() {
            // What others had given back before counts until after a grace period, and so was not to be had above.
            Ok(_) if failed == 0 && in_time => take_all(&mut taken, &mut take),
            Ok(_) => return failed,
            Err(error) => {
                let is_shortage = matches!(
                    error,
                    Error::LimitReached | Error::QuotaExceeded | Error::OutOfMemory
                );
                assert!(is_shortage && in_time, "{error}");
                failed += 1;
                drop(taken.pop());
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// Handles, notifications, mappings and pages, each in turn.
pub fn threads() {
    // The first makes the heap and the page tables.
    let place = start().unwrap();
    let own = OwnedHandle::new(syscall::notification_create().unwrap());
    let pages = || {
        let status = record::process_status(Handle::NONE)?;
        let mut free = status.quota_pages - status.pages;
        while free > 1 {
            free /= 2;
            match syscall::memory_create(Handle::NONE, free, 0) {
                Err(Error::QuotaExceeded) => {}
                made => return made.map(OwnedHandle::new),
            }
        }
        Err(Error::QuotaExceeded)
    };
    let failed = [
        without(|| handle::duplicate(own.raw(), Rights::WAIT)),
        without(|| syscall::notification_create().map(OwnedHandle::new)),
        without(|| Mapping::create(1)),
        without(pages),
    ];
    // A thread takes three handles, one notification, two mappings.
    let least = [3, 1, 2, 1];
    let all_failed = failed
        .iter()
        .zip(least)
        .all(|(&failed, least)| failed >= least);
    assert!(all_failed, "{failed:?}");
    for _ in 0..THREADS {
        assert_eq!(start(), Ok(place), "addresses are lost");
    }
}
