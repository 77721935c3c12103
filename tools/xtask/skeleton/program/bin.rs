//! `@name@ THREADS [-t MS]`: counts primes in so many threads, for so long or until it is ended.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
sysroot::entry!(program::main);

#[cfg(not(target_os = "none"))]
fn main() {}

#[cfg(target_os = "none")]
mod program {
    use core::ops::RangeInclusive;
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use programs::@name@;
    use sysroot::{ExitCode, println, thread};

    /// How many threads there may be.
    const THREADS: RangeInclusive<u64> = 1..=8;
    /// Numbers that a thread looks at between two looks at the time.
    const PART: u64 = 1000;

    pub fn main() -> Result<(), ExitCode> {
        let (threads, deadline) =
            programs::parse_timed(1, |arguments| arguments.number(0, "THREADS", &THREADS))?;
        let (next, found) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..threads {
                let work = || {
                    while !deadline.has_passed() {
                        let first = next.fetch_add(PART, Relaxed);
                        found.fetch_add(@name@::primes(first..first + PART), Relaxed);
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
}
