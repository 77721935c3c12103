//! Waiting on the machine: each thread has a notification of its own, whose bits are the reasons.
//!
//! Its handle is in the page of the thread's IPC buffer, behind the handle slots, where the kernel never writes. A thread that
//! [`crate::thread`] starts has it from the beginning; the first thread gets it before the second is started, so that no wait
//! can fail because there is none to be had. A program with one thread never pays for it.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use core::time::Duration;

use ipc::abi::message::HANDLES_END;
use ipc::abi::startup::CONTROL_OFFSET;
use ipc::abi::{Error, Handle, NEVER};

use super::Reason;
use crate::{OwnedHandle, buffer, syscall, time};

/// Offset of the word with the handle in the page of the IPC buffer.
pub const PARKER_OFFSET: u64 = CONTROL_OFFSET - 8;

const _: () = assert!(PARKER_OFFSET >= HANDLES_END as u64);

/// A thread, as those know it who are to wake it.
#[derive(Debug)]
pub struct Waiter(Handle);

impl Waiter {
    /// The calling thread.
    pub fn current() -> Self {
        Self(own())
    }
    /// Another name for the same thread, for who takes it out of a list.
    pub const fn taken(&self) -> Self {
        Self(self.0)
    }
    /// Its number.
    pub const fn raw(&self) -> u32 {
        self.0.raw()
    }
    /// Lets it go on.
    pub fn wake(self, reason: Reason) {
        // The thread does not end before it is woken, so its notification is there.
        let _ = syscall::signal(self.0, reason as u64);
    }
}

/// Makes sure that the calling thread can wait.
///
/// # Errors
/// `LimitReached` if there is no notification to be had.
pub fn prepare() -> Result<(), Error> {
    if word().load(Relaxed) == 0 {
        let made = OwnedHandle::new(syscall::notification_create()?);
        word().store(made.into_raw().raw(), Relaxed);
    }
    Ok(())
}

fn word() -> &'static AtomicU32 {
    let address = buffer::address().wrapping_add(PARKER_OFFSET as usize);
    // SAFETY: the word is in the page of this thread's IPC buffer, aligned, mapped for as long as the thread runs and written
    // by nobody else; a thread does not hand the reference on.
    unsafe { &*address.cast::<AtomicU32>() }
}

fn own() -> Handle {
    // Only a thread that was made by bare system calls has none yet.
    prepare()
        .expect("threads that `thread` starts have a notification, and so has who starts them");
    Handle::from_raw(word().load(Relaxed))
}

/// Waits until woken.
pub fn wait(reason: Reason) {
    while !wait_until(reason, NEVER) {}
}

/// Waits until woken, which is true, or until the deadline, in nanoseconds since boot.
pub fn wait_until(reason: Reason, deadline: u64) -> bool {
    let own = own();
    let mut others = 0;
    let woken = loop {
        match syscall::wait(own, deadline) {
            Ok(bits) if bits & reason as u64 != 0 => {
                others |= bits & !(reason as u64);
                break true;
            }
            Ok(bits) => others |= bits,
            Err(Error::TimedOut) => break false,
            Err(error) => panic!("a thread's own notification is refused: {error}"),
        }
    };
    if others != 0 {
        // What came for the other reason is kept for it.
        let _ = syscall::signal(own, others);
    }
    woken
}

/// The deadline that is so far from now.
pub fn deadline(after: Duration) -> u64 {
    time::after(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX))
}
