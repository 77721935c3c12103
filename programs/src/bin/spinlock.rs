//! `spinlock THREADS [-t MS]`: threads that all want one lock, and spin while another has it.
//!
//! The lock is held most of the time, so those who wait spend theirs in `acquire`: in its exchange, or in the loop with the
//! pause that looks whether another exchange is worth it.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::hint::black_box;
use core::ops::RangeInclusive;

use ipc::abi::Error;
use programs::Deadline;
use spin::mutex::{SpinMutex, SpinMutexGuard};
use sysroot::thread::{self, JoinHandle};
use sysroot::{ExitCode, println};

sysroot::entry!(main);

/// How many there may be.
const THREADS: RangeInclusive<u64> = 1..=8;
/// Turns of the loop under the lock.
const TURNS: u64 = 2000;

static LOCK: SpinMutex<u64> = SpinMutex::new(0);

fn main() -> Result<(), ExitCode> {
    let (threads, deadline) = programs::parse_timed("spinlock THREADS [-t MS]", 1, |arguments| {
        arguments.number(0, "THREADS", &THREADS)
    })?;
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

#[inline(never)]
fn contend(deadline: Deadline) {
    while !deadline.has_passed() {
        hold(&mut acquire());
    }
}

/// Where those are who do not have the lock.
#[inline(never)]
fn acquire() -> SpinMutexGuard<'static, u64> {
    LOCK.lock()
}

/// Where the one is who has it.
#[inline(never)]
fn hold(value: &mut u64) {
    for turn in 0..TURNS {
        *value = black_box(*value ^ turn);
    }
}
