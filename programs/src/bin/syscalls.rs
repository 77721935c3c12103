//! `syscalls [-t MS]`: calls the kernel all the time, for different things in turn, each from a function of its own.
#![no_std]
#![no_main]

use ipc::abi::{Error, Handle, NOW, Rights};
use sysroot::{ExitCode, OwnedHandle, println, syscall};

sysroot::entry!(main);

/// Rounds between two looks at the clock.
const ROUNDS: u32 = 64;

fn main() -> Result<(), ExitCode> {
    let ((), deadline) = programs::parse_timed("syscalls [-t MS]", 0, |_| Ok(()))?;
    let mix = || {
        let notification = OwnedHandle::new(syscall::notification_create()?);
        while !deadline.has_passed() {
            for _ in 0..ROUNDS {
                null()?;
                signal_and_wait(notification.raw())?;
                duplicate_and_close(notification.raw())?;
            }
        }
        Ok(())
    };
    mix().map_err(|error: Error| {
        println!("syscalls: {error}");
        ExitCode::FAILURE
    })
}

/// Into the kernel and out of it.
#[inline(never)]
fn null() -> Result<(), Error> {
    syscall::null()
}

/// A bit that is set, and taken.
#[inline(never)]
fn signal_and_wait(notification: Handle) -> Result<(), Error> {
    syscall::signal(notification, 1)?;
    syscall::wait(notification, NOW)?;
    Ok(())
}

/// A handle that comes and goes.
#[inline(never)]
fn duplicate_and_close(notification: Handle) -> Result<(), Error> {
    let copy = syscall::handle_duplicate(notification, Rights::SIGNAL)?;
    syscall::handle_close(copy)
}
