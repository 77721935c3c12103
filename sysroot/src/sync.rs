//! Locks between the threads of a program.
//!
//! Who finds a lock taken sleeps a little, instead of spinning: its holder may be a thread of lower priority on the same
//! CPU, which runs only while the waiter does not. Locks here are held for short times and rarely contended; what has to
//! wait for another thread's *work* uses a notification.

use spin::relax::RelaxStrategy;

use crate::{syscall, time};

/// How long a waiter sleeps, in nanoseconds.
const PAUSE: u64 = 20_000;

/// Sleeps between two looks at a lock.
#[derive(Debug)]
pub struct Sleep;

impl RelaxStrategy for Sleep {
    fn relax() {
        // However the call ends, the caller looks again.
        let _ = syscall::sleep(time::after(PAUSE));
    }
}

/// Mutual exclusion.
pub type Mutex<T> = spin::mutex::SpinMutex<T, Sleep>;

/// A value that is made once.
pub type Once<T> = spin::once::Once<T, Sleep>;
