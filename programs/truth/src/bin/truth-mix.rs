//! `truth-mix [MS]`: works, makes memory, which takes the kernel long with interrupts off, and calls the kernel for nothing. With a
//! time, it says at its end how many millionths of it each part took by the TSC; else it goes on for ever.
#![no_std]
#![no_main]

use ipc::abi::{Error, Handle};
use sysroot::{ExitCode, OwnedHandle, println, startup, syscall, time};
use truth::{AROUND_CALL, Turns, WHOLE};

sysroot::entry!(main);

/// Turns of the loop in a round.
const TURNS: u64 = 5000;
/// Pages that a round makes.
const PAGES: u64 = 4;
/// Calls for nothing in a round.
const NULLS: u64 = 4;
/// Rounds between two looks at the clock.
const ROUNDS: u64 = 16;

truth::loops! {
    work 0x2222_0001,
}

/// TSC ticks of each part.
#[derive(Default)]
struct Times {
    work: u64,
    make: u64,
    null: u64,
}

fn main() -> Result<(), ExitCode> {
    let end = match startup::args().next().map(str::parse::<u64>) {
        None => u64::MAX,
        Some(Ok(ms)) => time::after(ms * time::MILLISECOND),
        Some(Err(_)) => return Err(ExitCode::USAGE),
    };
    let (mut turns, mut times, mut rounds) = (Turns::new(), Times::default(), 0);
    while time::now() < end {
        for _ in 0..ROUNDS {
            round(&mut turns, &mut times).map_err(|error| {
                println!("truth-mix: {error}");
                ExitCode::FAILURE
            })?;
        }
        rounds += ROUNDS;
    }
    let Times { work, make, null } = times;
    let of = |part: u64| part * WHOLE / (work + make + null);
    let (making, nulls) = (
        of(2 * rounds * AROUND_CALL),
        of(NULLS * rounds * AROUND_CALL),
    );
    println!(
        "work {} make {} null {} around {making} {nulls}",
        of(work),
        of(make),
        of(null)
    );
    Ok(())
}

fn round(turns: &mut Turns, times: &mut Times) -> Result<(), Error> {
    let begin = syscall::rdtsc();
    work(turns, TURNS);
    let worked = syscall::rdtsc();
    make()?;
    let made = syscall::rdtsc();
    for _ in 0..NULLS {
        null()?;
    }
    times.work += worked - begin;
    times.make += made - worked;
    times.null += syscall::rdtsc() - made;
    Ok(())
}

/// Two calls: one that zeroes pages, and one that gives them back.
#[inline(never)]
fn make() -> Result<(), Error> {
    let memory = OwnedHandle::new(syscall::memory_create(Handle::NONE, PAGES, 0)?);
    syscall::handle_close(memory.into_raw())
}

#[inline(never)]
fn null() -> Result<(), Error> {
    syscall::null()
}
