//! `spinlock THREADS [-t MS]`: threads that all want one lock, and spin while another has it.
//!
//! The lock is held most of the time, so those who wait spend theirs in `acquire`: in its exchange, or in the loop with the
//! pause that looks whether another exchange is worth it.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
use {
    alloc::vec::Vec,
    core::hint::black_box,
    core::ops::RangeInclusive,
    ipc::abi::Error,
    programs::Deadline,
    spin::mutex::{SpinMutex, SpinMutexGuard},
    sysroot::thread::{self, JoinHandle},
    sysroot::{ExitCode, println},
};

#[cfg(target_os = "none")]
sysroot::entry!(main);

#[cfg(not(target_os = "none"))]
fn main() {}

/// How many there may be.
#[cfg(target_os = "none")]
const THREADS: RangeInclusive<u64> = 1..=8;
/// Turns of the loop under the lock.
#[cfg(target_os = "none")]
const TURNS: u64 = 2000;

#[cfg(target_os = "none")]
static LOCK: SpinMutex<u64> = SpinMutex::new(0);

#[cfg(target_os = "none")]
fn main() -> Result<(), ExitCode> {
    let (threads, deadline) =
        programs::parse_timed(1, |arguments| arguments.number(0, "THREADS", &THREADS))?;
    let run = || {
        let mut started = Vec::new();
        for _ in 0..threads {
            started.push(thread::spawn(move || contend(deadline))?);
        }
        started.into_iter().try_for_each(JoinHandle::join)
    };
    run().map_err(|error: Error| {
        println!("spinlock: {error}");
        ExitCode::FAILURE
    })
}

#[cfg(target_os = "none")]
#[inline(never)]
fn contend(deadline: Deadline) {
    while !deadline.has_passed() {
        hold(&mut acquire());
    }
}

/// Where those are who do not have the lock.
#[cfg(target_os = "none")]
#[inline(never)]
fn acquire() -> SpinMutexGuard<'static, u64> {
    LOCK.lock()
}

/// Where the one is who has it.
#[cfg(target_os = "none")]
#[inline(never)]
fn hold(value: &mut u64) {
    for turn in 0..TURNS {
        *value = black_box(*value ^ turn);
    }
}
