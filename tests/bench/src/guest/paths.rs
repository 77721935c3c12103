//! A long path through the kernel while samples come as fast as they can: it takes as long as without them, and what they take themselves.
//!
//! A large memory object is closed, and the calls after it free its pages, in steps of which each is one entry with interrupts off.

use alloc::vec::Vec;

use ipc::abi::profile::SourceRequest;
use ipc::abi::{Handle, Syscall};
use sample_ring::Sample;
use sysroot::syscall;
use sysroot::syscall::rdtsc;

use super::failure::{Effect, Failure, ensure, kernel};
use super::profiled::Profiler;
use super::rounds::Rounds;
use crate::figure::Figure;

/// Pages of the object, and calls in which they are freed.
const PAGES: u64 = 512;
const CALLS: usize = 64;
/// Objects that are freed without samples and with them.
const ROUNDS: usize = 32;
/// Samples a second: the most that can be asked of one CPU.
const FREQUENCY: u64 = 10_000;
/// What a sample takes at most there, with entry and exit: its frames are the kernel's, and the program's behind them.
const SAMPLE_MOST: u64 = 1_200;

/// When a call began and ended.
struct Path {
    from: u64,
    to: u64,
}

impl Path {
    const fn count(&self) -> u64 {
        self.to - self.from
    }

    /// Samples that were taken meanwhile.
    fn hits(&self, samples: &[Sample]) -> u64 {
        let during = |sample: &&Sample| (self.from..self.to).contains(&sample.tsc());
        samples.iter().filter(during).count() as u64
    }
}

/// Measures both. A timer's interrupt may make a call longer, so the least of what is alike counts.
pub fn measure() -> Result<(), Failure> {
    let calm: Vec<u64> = rounds()?.iter().map(|round| longest(round)).collect();
    let alone = calm.iter().min().copied().unwrap_or(0);
    let profiler = Profiler::open()?;
    let (storm, samples) = profiler.during_at(SourceRequest::Timer, FREQUENCY, rounds)?;
    let paths = storm.iter().flatten();
    let sampled: Vec<&Path> = paths
        .filter(|path| path.count() > alone && path.hits(&samples) > 0)
        .collect();
    let own = |path: &&Path| {
        let taken = path.hits(&samples) * SAMPLE_MOST;
        path.count().saturating_sub(taken)
    };
    let least = sampled.iter().map(own).min();
    ensure(least.is_some(), Effect::PathSampled)?;
    ensure(least <= Some(alone), Effect::PathUnchanged)?;
    Rounds::new(calm).print(Figure::LongPath);
    Rounds::new(sampled.iter().map(|path| path.count())).print(Figure::LongPathSampled);
    Ok(())
}

fn longest(round: &[Path]) -> u64 {
    round.iter().map(Path::count).max().unwrap_or(0)
}

/// Makes an object and lets it go, again and again, and says when the calls were made that freed it.
fn rounds() -> Result<Vec<Vec<Path>>, Failure> {
    let round = |_| {
        let mut paths = Vec::with_capacity(CALLS);
        let object = syscall::memory_create(Handle::NONE, PAGES, 0)
            .map_err(kernel(Syscall::memory_create))?;
        syscall::handle_close(object).map_err(kernel(Syscall::handle_close))?;
        for _ in 0..CALLS {
            let from = rdtsc();
            syscall::null().map_err(kernel(Syscall::null))?;
            paths.push(Path { from, to: rdtsc() });
        }
        Ok(paths)
    };
    (0..ROUNDS).map(round).collect()
}
