//! The storm itself: processes come and go, while the first thread reads the rings and judges what is in them.

mod account;
mod churn;
mod failure;

use alloc::vec::Vec;
use core::time::Duration;

use ipc::abi::profile::{DOMAINS_ALL, EVENT_CYCLES, EventSpec, Phase, SourceRequest};
use ipc::abi::startup::names;
use ipc::abi::{Handle, Syscall};
use sample_ring::{Counts, Geometry, Reader};
use sysroot::{ExitCode, Mapping, println, record, startup, syscall, thread, time};

use crate::watch::{Pids, Watch};
use account::Account;
use churn::Churn;
use failure::{Failure, kernel};

/// Samples a second that are asked of each CPU: the most that there can be, of timers with several CPUs; and with one, or of counters.
const FREQUENCY: u64 = 100_000;
const FREQUENCY_ALONE: u64 = 10_000;
/// Between two looks at the rings.
const LOOK: Duration = Duration::from_micros(200);
/// How long the driver may take to arm and to disarm: far more than a tick.
const PATIENCE: u64 = 10_000 * time::MILLISECOND;
/// How long one run of the driver lasts.
const RUN: u64 = 100 * time::MILLISECOND;
/// How long an NMI may be on its way.
const ON_ITS_WAY: u64 = 100 * time::MILLISECOND;

static PIDS: Pids = Pids::new();

/// Rages for so many milliseconds.
pub fn main() -> ExitCode {
    let numbers: Vec<u64> = startup::args()
        .map_while(|word| word.parse().ok())
        .collect();
    let source = match startup::args().nth(2) {
        None => Some(SourceRequest::Timer),
        Some(word) => (word == "pmu").then_some(SourceRequest::Pmu),
    };
    let (&[ms, seed], Some(source)) = (&numbers[..], source) else {
        println!("storm: two numbers, MS and SEED, and `pmu` for samples by counters");
        return ExitCode::USAGE;
    };
    match run(ms, seed, source) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("storm: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn given(name: &'static str) -> Result<Handle, Failure> {
    startup::handle(name).ok_or(Failure::NotGiven(name))
}

fn run(ms: u64, seed: u64, source: SourceRequest) -> Result<(), Failure> {
    let (system, profiler) = (given(names::SYSTEM)?, given(names::PROFILER)?);
    let pages = account::own_pages()?;
    let mut watch = Watch::new(&PIDS);
    let counts = storm(system, profiler, ms, seed, source, &mut watch)?;
    account::pages_are_back(pages)?;
    print(&watch, counts);
    if watch.seen.wrong > 0 {
        return Err(Failure::Wrong(watch.seen.wrong));
    }
    if counts.damaged > 0 {
        return Err(Failure::Damaged(counts.damaged));
    }
    Ok(())
}

/// The storm, from the first process to the last. Gives what became of the records.
fn storm(
    system: Handle,
    profiler: Handle,
    ms: u64,
    seed: u64,
    source: SourceRequest,
    watch: &mut Watch<'_>,
) -> Result<Counts, Failure> {
    let (memory, bytes) =
        syscall::profiler_rings(profiler).map_err(kernel(Syscall::profiler_rings))?;
    let rings = Mapping::whole(memory).map_err(kernel(Syscall::map))?;
    syscall::handle_close(memory).map_err(kernel(Syscall::handle_close))?;
    let words = bytes as usize / size_of::<u64>();
    let cpus = startup::info().cpus;
    let mut readers = (0..cpus as usize)
        .map(|cpu| {
            let ring = rings.words().get(cpu * words..(cpu + 1) * words);
            let ring = ring.ok_or(Failure::Ring(cpu))?;
            Reader::open(ring, Geometry::KERNEL).map_err(|_| Failure::Ring(cpu))
        })
        .collect::<Result<Vec<_>, Failure>>()?;

    let before = Account::of(system, profiler)?;
    let churn = Churn::start(system, &PIDS, 2 * cpus as usize, seed)?;
    let frequency = if cpus == 1 || source == SourceRequest::Pmu {
        FREQUENCY_ALONE
    } else {
        FREQUENCY
    };
    let end = time::after(ms * time::MILLISECOND);
    let mut runs = 0;
    let mut sampled = Ok(());
    while sampled.is_ok() && !churn.has_failed() {
        // A host may be too busy to run every CPU in a short storm: then it lasts until each has taken a sample.
        let stop = match time::now() {
            now if now < end => end.min(now + RUN),
            now if now < end + PATIENCE && readers.iter().any(has_nothing) => now + RUN,
            _ => break,
        };
        sampled = sample(profiler, source, frequency, stop, &mut || {
            look(&mut readers, watch)
        });
        runs += 1;
    }
    if sampled.is_ok() {
        time::sleep(ON_ITS_WAY);
        sampled = look(&mut readers, watch);
    }
    // Whatever has failed, no process is left: it would run for ever, and its slots would be missing to who looks at them next.
    let made = churn.stop();
    sampled?;
    let made = made?;
    let after = Account::of(system, profiler)?;
    println!(
        "storm of {ms} ms on {cpus} cpus, {frequency} samples a second asked of each, {runs} times: {made} processes came and went"
    );
    let counts: Vec<Counts> = readers.iter().map(Reader::counts).collect();
    after.print_since(&before);
    after.check_since(&before, &counts)?;
    Ok(counts.into_iter().fold(Counts::default(), add))
}

/// Samples until this time.
fn sample(
    profiler: Handle,
    source: SourceRequest,
    frequency: u64,
    end: u64,
    look: &mut impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    start(profiler, source, frequency)?;
    while time::now() < end {
        look()?;
        thread::sleep(LOOK);
    }
    syscall::profiler_stop(profiler).map_err(kernel(Syscall::profiler_stop))?;
    until(profiler, Phase::Idle)
}

/// Begins to sample.
fn start(profiler: Handle, source: SourceRequest, frequency: u64) -> Result<(), Failure> {
    let cycles = EventSpec {
        event: EVENT_CYCLES,
        raw: 0,
        frequency,
        domains: DOMAINS_ALL,
    };
    record::profiler_start(profiler, source, &[cycles]).map_err(kernel(Syscall::profiler_start))?;
    until(profiler, Phase::Open)
}

/// Waits for the driver.
fn until(profiler: Handle, phase: Phase) -> Result<(), Failure> {
    let deadline = time::after(PATIENCE);
    let status = || record::profiler_status(profiler).map_err(kernel(Syscall::profiler_status));
    while status()?.phase != phase as u64 {
        if time::now() > deadline {
            return Err(Failure::Phase(phase));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Judges what was written since the last look. A record that is none is counted by its reader.
fn look(readers: &mut [Reader<'_>], watch: &mut Watch<'_>) -> Result<(), Failure> {
    for (cpu, reader) in readers.iter_mut().enumerate() {
        let records = reader.drain().map_err(|_| Failure::Ring(cpu))?;
        for sample in records.flatten() {
            watch.look(&sample);
        }
    }
    Ok(())
}

/// Whether a CPU has taken no sample yet.
fn has_nothing(reader: &Reader<'_>) -> bool {
    reader.counts() == Counts::default()
}

const fn add(sum: Counts, more: Counts) -> Counts {
    Counts {
        read: sum.read + more.read,
        lost: sum.lost + more.lost,
        damaged: sum.damaged + more.damaged,
    }
}

fn print(watch: &Watch<'_>, counts: Counts) {
    let seen = watch.seen;
    println!(
        "records: {} read, {} overwritten, {} damaged",
        counts.read, counts.lost, counts.damaged
    );
    println!(
        "chains: {} of the processes, {} of them in the kernel; {} clients, {} of them told by who served them, {} of these through another; {} incomplete, {} changed, {} wrong",
        seen.storms,
        seen.in_kernel,
        seen.clients,
        seen.served,
        seen.passed,
        seen.incomplete,
        seen.changed,
        seen.wrong
    );
    for (fault, sample) in &watch.faults {
        println!(
            "wrong: {fault:x?} flags {:#x} rip.. rsp {:#x} rbp {:#x}",
            sample.header().flags,
            sample.rsp(),
            sample.rbp()
        );
        for part in sample.parts() {
            println!("  {:x?} {:x?}", part.owner, part.frames);
        }
    }
}
