//! What a sample by NMI takes from the program that it interrupts: a loop reads the counter again and again, and an NMI is a gap
//! between two readings. Which gaps are samples is told by the times that the samples have.

use alloc::vec::Vec;
use core::hint::black_box;

use ipc::abi::profile::{SourceRequest, flags};
use ipc::abi::{NEVER, Rights, Syscall, Tag};
use sample_ring::Sample;
use sysroot::syscall::message::{NO_WORDS, call, receive, reply};
use sysroot::syscall::rdtsc;
use sysroot::{syscall, thread};

use super::buffer;
use super::failure::{Effect, Failure, ensure, given, kernel};
use super::messages::RELAY;
use super::profiled::Profiler;
use super::rounds::Rounds;
use super::threads::joined;
use super::ticks::{FRAMES, INTERRUPT, whole};
use crate::figure::Figure;

/// Interrupts that are waited for: more than one in two is a sample.
const GAPS: usize = 64;
/// Samples that are measured at least.
const SAMPLES: usize = 16;
/// Address spaces of the longest chain: a thread here, the peer that it serves, and this program again, which that one serves.
const SPACES: usize = 3;

/// Measures a sample, and what each further address space adds to it. The peer must run.
pub fn measure() -> Result<(), Failure> {
    let profiler = Profiler::open()?;
    let (costs, depth) = alone(&profiler, SourceRequest::Timer)?;
    let least = costs.iter().min().copied().unwrap_or(0);
    Rounds::new(costs).print(Figure::NmiSample);

    let (gaps, samples) = profiler.during(SourceRequest::Timer, || serving(depth))?;
    let (costs, _) = sampled(&gaps, &samples, SPACES)?;
    let further = costs
        .iter()
        .map(|cost| cost.saturating_sub(least) / (SPACES as u64 - 1));
    Rounds::new(further).print(Figure::NmiClient);
    Ok(())
}

/// Measures a sample by this CPU's own counter.
pub fn measure_counter() -> Result<(), Failure> {
    let (costs, _) = alone(&Profiler::open()?, SourceRequest::Pmu)?;
    Rounds::new(costs).print(Figure::CounterSample);
    Ok(())
}

/// What samples of a thread take that serves nobody, and at which depth of calls it has as many frames as are wanted.
fn alone(profiler: &Profiler, source: SourceRequest) -> Result<(Vec<u64>, usize), Failure> {
    let at = |depth| {
        let (gaps, samples) = profiler.during(source, || {
            let thread =
                thread::spawn(move || descend(depth)).map_err(kernel(Syscall::thread_create))?;
            joined(thread)
        })?;
        sampled(&gaps, &samples, 1)
    };
    // How many frames the callers of `descend` have is the compiler's choice.
    let (_, shallow) = at(0)?;
    let depth = FRAMES
        .checked_sub(shallow)
        .ok_or(Failure::Frames(shallow))?;
    let (costs, frames) = at(depth)?;
    if frames != FRAMES {
        return Err(Failure::Frames(frames));
    }
    Ok((costs, depth))
}

/// The gaps of a thread that serves the peer, while that serves this one.
fn serving(depth: usize) -> Result<Vec<Gap>, Failure> {
    let endpoint = syscall::endpoint_create().map_err(kernel(Syscall::endpoint_create))?;
    let server = thread::spawn(move || {
        receive(endpoint, NEVER).map_err(kernel(Syscall::receive))?;
        let gaps = descend(depth);
        reply(Tag::new(RELAY, 0, 0), NO_WORDS).map_err(kernel(Syscall::reply))?;
        Ok(gaps)
    });
    let server = server.map_err(kernel(Syscall::thread_create))?;
    buffer::put_handle(endpoint, Rights::CALL);
    let peer = given("bench-peer")?;
    call(peer, Tag::new(RELAY, 0, 1), NO_WORDS, NEVER).map_err(kernel(Syscall::call))?;
    joined(server)?
}

/// Two readings of the counter with an interrupt between them.
struct Gap {
    from: u64,
    to: u64,
    /// What the loop itself takes from one to the next.
    usual: u64,
}

/// What the samples took that were taken between two such readings, and how many frames each of them has: all the same, of chains that
/// go through so many address spaces.
fn sampled(gaps: &[Gap], samples: &[Sample], spaces: usize) -> Result<(Vec<u64>, usize), Failure> {
    let mut costs = Vec::new();
    let mut frames = None;
    for gap in gaps {
        let mut here = samples
            .iter()
            .filter(|sample| (gap.from..gap.to).contains(&sample.tsc()));
        let Some(sample) = here.next() else {
            continue;
        };
        // By a counter, a tick may have one in the middle of it.
        if sample.header().flags & flags::KERNEL != 0 {
            continue;
        }
        let found = (whole(sample), sample.parts().count());
        let alike = found == (*frames.get_or_insert(found.0), spaces) && found.0 > 0;
        ensure(alike && here.next().is_none(), Effect::SamplesAlike)?;
        costs.push(gap.to - gap.from - gap.usual);
    }
    ensure(costs.len() >= SAMPLES, Effect::SamplesAlike)?;
    Ok((costs, frames.unwrap_or(0)))
}

/// Waits for interrupts at the bottom of a chain of calls.
#[inline(never)]
fn descend(depth: usize) -> Vec<Gap> {
    if depth == 0 {
        return black_box(gaps());
    }
    // What is done with the result keeps the call from becoming a jump.
    black_box(descend(black_box(depth - 1)))
}

fn gaps() -> Vec<Gap> {
    let mut gaps = Vec::with_capacity(GAPS);
    let mut usual = 0;
    let mut from = rdtsc();
    while gaps.len() < GAPS {
        let to = rdtsc();
        if to - from < INTERRUPT {
            usual = to - from;
            from = to;
        } else {
            gaps.push(Gap { from, to, usual });
            // What it takes to keep it is no gap.
            from = rdtsc();
        }
    }
    gaps
}
