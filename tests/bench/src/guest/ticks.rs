//! What a timer tick takes from the program that it interrupts: a loop reads the counter again and again, and a tick is a gap
//! between two readings. The tick of a profile is the same, longer.
//!
//! Other interrupts make gaps too, and the first tick of a profile arms the CPU; the least gap of many is that of a tick alone.

use alloc::vec::Vec;
use core::hint::black_box;

use ipc::abi::Syscall;
use ipc::abi::profile::{SourceRequest, flags};
use sample_ring::Sample;
use sysroot::syscall::rdtsc;
use sysroot::thread;

use super::counter::{TURN, turn};
use super::failure::{Effect, Failure, kernel};
use super::profiled::Profiler;
use super::rounds::Rounds;
use super::threads::joined;
use crate::figure::Figure;

/// Ticks that are measured.
const TICKS: usize = 8;
/// Instructions from one tick to the next, at 100 ticks a second and a nanosecond each.
const PERIOD: u64 = 10_000_000;
/// Instructions before a tick from which on the counter is read.
const MARGIN: u64 = 200_000;
/// Instructions that the loop never takes, and an interrupt always does.
pub const INTERRUPT: u64 = 100;
/// Frames of the sample that is measured.
pub const FRAMES: usize = 8;

/// Measures both.
pub fn measure() -> Result<(), Failure> {
    Rounds::new(gaps(TICKS)).print(Figure::Tick);

    let profiler = Profiler::open()?;
    let sampled = |depth| sample(&profiler, depth);
    // How many frames the callers of `descend` have is the compiler's choice.
    let (_, shallow) = sampled(0)?;
    let depth = FRAMES
        .checked_sub(shallow)
        .ok_or(Failure::Frames(shallow))?;
    let (rounds, frames) = sampled(depth)?;
    if frames != FRAMES {
        return Err(Failure::Frames(frames));
    }
    rounds.print(Figure::TickSample);
    Ok(())
}

/// Interrupts between two readings of the counter, so many, without what the loop itself takes.
fn gaps(count: usize) -> Vec<u64> {
    let mut gaps = Vec::with_capacity(count);
    let mut usual = 0;
    let mut last = rdtsc();
    while gaps.len() < count {
        let now = rdtsc();
        let gap = now - last;
        last = now;
        if gap < INTERRUPT {
            usual = gap;
            continue;
        }
        gaps.push(gap - usual);
        // Until shortly before the next.
        turn((PERIOD - MARGIN) / TURN);
        last = rdtsc();
    }
    gaps
}

/// Ticks that take samples of a thread at the bottom of `depth` more calls than it needs, and how many frames each has.
///
/// The thread is new, so that its frames are at the end of its stack: all in one page, however deep this function is.
fn sample(profiler: &Profiler, depth: usize) -> Result<(Rounds, usize), Failure> {
    let (mut gaps, samples) = profiler.during(SourceRequest::Tick, || {
        let thread =
            thread::spawn(move || descend(depth)).map_err(kernel(Syscall::thread_create))?;
        joined(thread)
    })?;
    // The first tick armed the CPU.
    gaps.remove(0);
    let frames: Vec<usize> = samples.iter().map(whole).collect();
    let all = frames.get(..gaps.len()).unwrap_or_default();
    match all.first() {
        Some(&first) if all.iter().all(|&frames| frames == first) => {
            let rounds = Rounds::new(gaps);
            Ok((rounds, first))
        }
        _ => Err(Failure::NotDone(Effect::SamplesAlike)),
    }
}

/// Frames of a sample whose walk went to the end; none of another.
pub fn whole(sample: &Sample) -> usize {
    if sample.header().flags & (flags::TRUNCATED | flags::CUT) != 0 {
        return 0;
    }
    sample.parts().map(|part| part.frames.len()).sum()
}

/// Waits for ticks at the bottom of a chain of calls.
#[inline(never)]
fn descend(depth: usize) -> Vec<u64> {
    if depth == 0 {
        return black_box(gaps(TICKS + 1));
    }
    // What is done with the result keeps the call from becoming a jump.
    black_box(descend(black_box(depth - 1)))
}
