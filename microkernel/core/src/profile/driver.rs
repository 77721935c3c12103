//! The driver: what `profd` may ask of it, and what each CPU does for it in its tick.
//!
//! [`Driver::on_tick`] is the sampling path; its rules are in [`super`]. Start, stop and status are system calls: they take
//! the control lock, which no tick does.

use super::arming::{Arming, Duty};
use super::counters::Counters;
use super::interrupted::Interrupted;
use super::layout::{KernelMap, Span};
use super::machine::Machine;
use super::record::{self, Place};
use super::source::{self, SampleSource};
use super::threads::Threads;
use crate::base::addr::Tsc;
use crate::base::cpu::{CPUS_MAX, Cpu, CpuId};
use crate::base::lock::{Lock, rank};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, compiler_fence};
use ipc::abi::Error;
use ipc::abi::profile::{EventSpec, ProfilerStatus, SampleCounters, Source, SourceRequest};
use sample_ring::Writer;

/// Stacks of one CPU: its kernel stack, and one for each IST entry.
pub const STACKS: usize = 8;

/// What the driver keeps for a CPU, made at boot and kept for the life of the system.
#[derive(Debug)]
pub struct CpuState {
    ring: Writer<'static>,
    stacks: [Span; STACKS],
    /// Set before this CPU's source starts and cleared after it stopped, by this CPU. It tells an interrupt on this CPU
    /// whether a sample is meant.
    pub(super) armed: AtomicBool,
    counters: Counters,
    /// Records written when `profd` was last woken.
    announced: AtomicU64,
}

impl CpuState {
    /// The state of a CPU with this ring and these stacks; places in `stacks` that it does not use are [`Span::EMPTY`].
    #[must_use]
    pub fn new(ring: Writer<'static>, stacks: [Span; STACKS]) -> Self {
        Self {
            ring,
            stacks,
            armed: AtomicBool::new(false),
            counters: Counters::default(),
            announced: AtomicU64::new(0),
        }
    }
}

/// Whether `profd` is to be woken; the kernel signals its notification when it is out of the sampling path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Wake {
    /// Nothing happened that it waits for.
    No,
    /// The window opened, or every CPU has disarmed.
    Phase,
    /// A quarter of this CPU's ring was written since it was last woken for it.
    Ring,
}

/// The profiling driver.
pub struct Driver {
    cpus: &'static [CpuState],
    sources: &'static [&'static dyn SampleSource],
    map: KernelMap,
    arming: Arming,
    /// Index of the source of the run, or the last one; beyond the sources before the first. Written before a run begins.
    source: AtomicUsize,
    control: Lock<(), { rank::PROFILER }>,
}

impl Driver {
    /// A driver for the CPUs that run, numbered as in the slice, with these sources, best first.
    ///
    /// # Errors
    /// `LimitReached` if there are more CPUs than a mask holds.
    pub fn new(
        cpus: &'static [CpuState],
        sources: &'static [&'static dyn SampleSource],
        map: KernelMap,
    ) -> Result<Self, Error> {
        if cpus.len() > CPUS_MAX {
            return Err(Error::LimitReached);
        }
        Ok(Self {
            cpus,
            sources,
            map,
            arming: Arming::new(),
            source: AtomicUsize::new(usize::MAX),
            control: Lock::new(()),
        })
    }

    /// Begins a profile: each CPU arms its source in its next tick. Says which source it is.
    ///
    /// # Errors
    /// `Unsupported` for a source that is not there, or events that it cannot take; `BadArgument` for events without
    /// meaning; `Busy` while a profile is on or still disarming.
    pub fn start(
        &self,
        cpu: &Cpu,
        request: SourceRequest,
        specs: &[EventSpec],
    ) -> Result<Source, Error> {
        let index = source::select(self.sources, request)?;
        let source = self.sources[index];
        source::check(specs, source.frequency())?;
        let _control = self.control.lock(cpu);
        if !self.arming.is_idle() {
            return Err(Error::Busy);
        }
        self.source.store(index, Ordering::Relaxed);
        self.arming.start(mask(self.cpus.len()));
        Ok(source.id())
    }

    /// Ends the profile: each CPU disarms in its next tick. `now` closes the window. Stopping twice is no error.
    ///
    /// # Errors
    /// `WrongState` if no profile is on.
    pub fn stop(&self, cpu: &Cpu, now: Tsc) -> Result<(), Error> {
        let _control = self.control.lock(cpu);
        if self.arming.stop(now) {
            Ok(())
        } else {
            Err(Error::WrongState)
        }
    }

    /// Where the driver stands, and its counters over all CPUs.
    pub fn status(&self, cpu: &Cpu) -> ProfilerStatus {
        let _control = self.control.lock(cpu);
        let standing = self.arming.standing();
        let source = self.source();
        let mut counters = SampleCounters::default();
        for cpu in self.cpus {
            add(&mut counters, cpu.counters.read());
        }
        ProfilerStatus {
            phase: standing.phase as u64,
            source: source.map_or(0, |source| source.id() as u64),
            stragglers: standing.stragglers,
            opened: standing.opened,
            closed: standing.closed,
            frequency: source.map_or(0, SampleSource::frequency),
            cpus: self.cpus.len() as u64,
            counters,
        }
    }

    /// Records that a CPU has written since boot, and its counters. `None` if there is no such CPU.
    #[must_use]
    pub fn cpu(&self, index: usize) -> Option<(u64, SampleCounters)> {
        let cpu = self.cpus.get(index)?;
        Some((cpu.ring.head(), cpu.counters.read()))
    }

    /// This CPU's part in whatever is on. Called in every tick of every CPU, with interrupts off, with what the tick
    /// interrupted; `missed` ticks before it were not taken. When no profile is on it reads one word.
    pub fn on_tick<M: Machine, T: Threads>(
        &self,
        cpu: CpuId,
        at: &Interrupted,
        missed: u64,
        machine: &M,
        threads: &T,
    ) -> Wake {
        let duty = self.arming.duty(cpu);
        if duty == Duty::Rest {
            return Wake::No;
        }
        let (Some(state), Some(source)) = (self.cpus.get(cpu.index()), self.source()) else {
            return Wake::No;
        };
        match duty {
            Duty::Rest => Wake::No,
            Duty::Arm => {
                state.announced.store(state.ring.head(), Ordering::Relaxed);
                state.armed.store(true, Ordering::Relaxed);
                // An interrupt of the source on this CPU finds `armed` set.
                compiler_fence(Ordering::SeqCst);
                source.arm(cpu);
                phase_changed(self.arming.armed(cpu, machine.tsc()))
            }
            Duty::Sample => {
                if source.in_tick() {
                    state.counters.missed(missed);
                    self.sample(state, cpu, at, machine, threads);
                }
                ring_filled(state)
            }
            Duty::Disarm => {
                if state.armed.load(Ordering::Relaxed) {
                    source.disarm(cpu);
                    // An interrupt of the source that was on its way finds `armed` still set.
                    compiler_fence(Ordering::SeqCst);
                    state.armed.store(false, Ordering::Relaxed);
                }
                phase_changed(self.arming.disarmed(cpu))
            }
        }
    }

    fn sample<M: Machine, T: Threads>(
        &self,
        state: &CpuState,
        cpu: CpuId,
        at: &Interrupted,
        machine: &M,
        threads: &T,
    ) {
        let now = machine.tsc();
        state.counters.taken();
        let place = Place {
            cpu,
            machine,
            map: &self.map,
            stacks: &state.stacks,
        };
        let findings = record::write(state.ring.begin(), &place, now, at, threads);
        let ticks = machine.tsc().0.saturating_sub(now.0);
        state.counters.found(findings, ticks);
    }

    fn source(&self) -> Option<&'static dyn SampleSource> {
        self.sources
            .get(self.source.load(Ordering::Relaxed))
            .copied()
    }
}

/// A bit for each of the first CPUs.
const fn mask(cpus: usize) -> u64 {
    match cpus {
        0 => 0,
        cpus => u64::MAX >> (CPUS_MAX - cpus),
    }
}

const fn phase_changed(changed: bool) -> Wake {
    if changed { Wake::Phase } else { Wake::No }
}

/// The kernel cannot know how far `profd` has read, since it can write nothing to the kernel; so it is woken for each
/// quarter of the ring, and has three more to get there.
fn ring_filled(state: &CpuState) -> Wake {
    let head = state.ring.head();
    let fresh = head.saturating_sub(state.announced.load(Ordering::Relaxed));
    if fresh < state.ring.records() as u64 / 4 {
        return Wake::No;
    }
    state.announced.store(head, Ordering::Relaxed);
    Wake::Ring
}

const fn add(sum: &mut SampleCounters, more: SampleCounters) {
    let SampleCounters {
        taken,
        missed,
        truncated,
        cut,
        unmapped,
        changed,
        late,
        throttled,
        cost,
    } = more;
    sum.taken += taken;
    sum.missed += missed;
    sum.truncated += truncated;
    sum.cut += cut;
    sum.unmapped += unmapped;
    sum.changed += changed;
    sum.late += late;
    sum.throttled += throttled;
    sum.cost += cost;
}
