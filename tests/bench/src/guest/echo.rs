//! What a datagram that another program answers takes from a CPU: a loop of the lowest priority reads the counter again and again, and all
//! that runs from the card's interrupt until nobody has anything to do is a gap between two readings.
//!
//! Somebody outside sends datagrams meanwhile, the next when the last has come back.

use alloc::vec::Vec;

use ipc::abi::{Handle, Syscall};
use sysroot::syscall;
use sysroot::syscall::rdtsc;

use super::failure::{Failure, kernel};
use super::rounds::{Rounds, WARM_UP};
use crate::figure::Figure;

/// Datagrams that are measured.
const DATAGRAMS: usize = 4000;
/// Instructions that no tick takes, nor the network by itself, and a datagram that is answered always does.
const ANSWER: u64 = 5_000;
/// A priority below all that serves.
const LOWEST: u64 = 1;
/// The place of a thread that may run anywhere.
const ANY_CPU: u64 = u64::MAX;

/// Measures as many as are wanted; they must come.
pub fn measure() -> Result<(), Failure> {
    syscall::thread_set(Handle::NONE, LOWEST, ANY_CPU).map_err(kernel(Syscall::thread_set))?;
    let mut gaps = Vec::with_capacity(WARM_UP + DATAGRAMS);
    let mut usual = 0;
    let mut last = rdtsc();
    while gaps.len() < WARM_UP + DATAGRAMS {
        let now = rdtsc();
        let gap = now - last;
        if gap >= ANSWER {
            gaps.push(gap - usual);
        } else {
            usual = gap.min(ANSWER);
        }
        last = rdtsc();
    }
    Rounds::new(gaps.into_iter().skip(WARM_UP)).print(Figure::Echo);
    Ok(())
}
