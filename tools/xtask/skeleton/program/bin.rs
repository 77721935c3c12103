//! `@name@ THREADS [-t MS]`: counts primes in so many threads, for so long or until it is ended.
#![no_std]
#![no_main]

use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use programs::@name@::primes;
use sysroot::{ExitCode, println, thread};

sysroot::entry!(main);

/// How many threads there may be.
const THREADS: RangeInclusive<u64> = 1..=8;
/// Numbers that a thread looks at between two looks at the time.
const PART: u64 = 1000;

fn main() -> Result<(), ExitCode> {
    let (threads, deadline) = programs::parse_timed("@name@ THREADS [-t MS]", 1, |arguments| {
        arguments.number(0, "THREADS", &THREADS)
    })?;
    let (next, found) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..threads {
            let work = || {
                while !deadline.has_passed() {
                    let first = next.fetch_add(PART, Relaxed);
                    found.fetch_add(primes(first..first + PART), Relaxed);
                }
            };
            if let Err(error) = scope.spawn(work) {
                println!("@name@: cannot start a thread: {error}");
                sysroot::exit(ExitCode::FAILURE);
            }
        }
    });
    println!(
        "{} primes below {}",
        found.into_inner(),
        next.into_inner()
    );
    Ok(())
}
