//! What a timer tick takes from the program that it interrupts: a loop reads the counter again and again, and a tick is a gap
//! between two readings. The tick of a profile is the same, longer.
//!
//! Other interrupts make gaps too, and the first tick of a profile arms the CPU; the least gap of many is that of a tick alone.

use alloc::vec::Vec;
use core::hint::black_box;

use ipc::abi::profile::{DOMAINS_ALL, EVENT_CYCLES, EventSpec, Phase, SourceRequest, flags};
use ipc::abi::startup::names;
use ipc::abi::{Handle, Syscall};
use sample_ring::{Geometry, Reader, Sample};
use sysroot::syscall::rdtsc;
use sysroot::{Mapping, record, syscall, thread, time};

use super::counter::{TURN, turn};
use super::failure::{Effect, Failure, ensure, given, kernel};
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
const INTERRUPT: u64 = 100;
/// Frames of the sample that is measured.
const FRAMES: usize = 8;
/// How long the driver may take to disarm, in nanoseconds: far more than a tick.
const DISARMED: u64 = 100 * time::MILLISECOND;

/// Measures both.
pub fn measure() -> Result<(), Failure> {
    Rounds::new(gaps(TICKS)).print(Figure::Tick);

    let profiler = given(names::PROFILER)?;
    let (memory, _) = syscall::profiler_rings(profiler).map_err(kernel(Syscall::profiler_rings))?;
    let rings = Mapping::whole(memory).map_err(kernel(Syscall::map))?;
    let sampled = |depth| sample(profiler, &rings, depth);
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
fn sample(profiler: Handle, rings: &Mapping, depth: usize) -> Result<(Rounds, usize), Failure> {
    let mut reader = Reader::open(rings.words(), Geometry::KERNEL)
        .map_err(|_| Failure::NotDone(Effect::RingsOpen))?;
    let cycles = EventSpec {
        event: EVENT_CYCLES,
        raw: 0,
        frequency: 0,
        domains: DOMAINS_ALL,
    };
    record::profiler_start(profiler, SourceRequest::Tick, &[cycles])
        .map_err(kernel(Syscall::profiler_start))?;
    let thread = thread::spawn(move || descend(depth)).map_err(kernel(Syscall::thread_create))?;
    let mut gaps = joined(thread)?;
    syscall::profiler_stop(profiler).map_err(kernel(Syscall::profiler_stop))?;
    let deadline = time::after(DISARMED);
    let status = || record::profiler_status(profiler).map_err(kernel(Syscall::profiler_status));
    while status()?.phase != Phase::Idle as u64 {
        ensure(time::now() < deadline, Effect::Disarmed)?;
    }
    // The first tick armed the CPU.
    gaps.remove(0);
    let records = reader
        .drain()
        .map_err(|_| Failure::NotDone(Effect::RingRead))?;
    let frames: Vec<usize> = records.flatten().map(|sample| whole(&sample)).collect();
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
fn whole(sample: &Sample) -> usize {
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
