//! The driver: what `profd` may ask of it, and what each CPU does for it in its tick.
//!
//! [`Driver::on_tick`] is part of the sampling path; its rules are in [`super`]. Start, stop and status are system calls: they take the
//! control lock, which no tick and no NMI does.

use super::arming::{Arming, Duty};
use super::cpu::CpuState;
use super::expected::Expected;
use super::interrupted::Interrupted;
use super::layout::KernelMap;
use super::machine::Machine;
use super::source::{self, SampleSource, Trigger};
use super::threads::Threads;
use crate::base::addr::Tsc;
use crate::base::cpu::{CPUS_MAX, Cpu, CpuId};
use crate::base::lock::{Lock, rank};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use ipc::abi::Error;
use ipc::abi::profile::{EventSpec, ProfilerStatus, SampleCounters, Source, SourceRequest};

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
    pub(super) cpus: &'static [CpuState],
    pub(super) sources: &'static [&'static dyn SampleSource],
    /// Bit per source that works.
    pub(super) offered: AtomicU64,
    /// Bit per CPU that a source of counters samples by its own. Written before that is offered.
    pub(super) counting: AtomicU64,
    pub(super) map: KernelMap,
    pub(super) arming: Arming,
    /// Index of the source of the run, or the last one; beyond the sources before the first. Written before a run begins.
    source: AtomicUsize,
    /// Nominal samples per second of that run; likewise.
    pub(super) frequency: AtomicU64,
    /// Start, stop and status, one at a time; and the process that began the run that is on or was last, by its id.
    control: Lock<u32, { rank::PROFILER }>,
}

impl Driver {
    /// A driver for the CPUs that run, numbered as in the slice, with these sources, best first. Those that sample in the tick are
    /// offered at once.
    ///
    /// # Errors
    /// `LimitReached` if there are more CPUs or sources than a mask holds.
    pub fn new(
        cpus: &'static [CpuState],
        sources: &'static [&'static dyn SampleSource],
        map: KernelMap,
    ) -> Result<Self, Error> {
        if cpus.len() > CPUS_MAX || sources.len() > u64::BITS as usize {
            return Err(Error::LimitReached);
        }
        let in_tick = |(_, source): &(usize, &&dyn SampleSource)| source.trigger() == Trigger::Tick;
        let ticks = sources.iter().enumerate().filter(in_tick);
        Ok(Self {
            cpus,
            sources,
            offered: AtomicU64::new(ticks.map(|(index, _)| 1 << index).sum()),
            counting: AtomicU64::new(0),
            map,
            arming: Arming::new(),
            source: AtomicUsize::new(usize::MAX),
            frequency: AtomicU64::new(0),
            control: Lock::new(0),
        })
    }

    /// Offers a source from now on, by what it is and what takes its samples: it has shown that it works on every CPU.
    pub fn offer(&self, id: Source, trigger: Trigger) {
        for (index, source) in self.sources.iter().enumerate() {
            if (source.id(), source.trigger()) == (id, trigger) {
                self.offered.fetch_or(1 << index, Ordering::Release);
            }
        }
    }

    /// What the driver keeps for a CPU; `None` if there is no such CPU.
    #[must_use]
    pub fn state(&self, cpu: CpuId) -> Option<&'static CpuState> {
        self.cpus.get(cpu.index())
    }

    /// The NMI that a CPU is about to get; `None` if there is no such CPU.
    #[must_use]
    pub fn expected(&self, cpu: CpuId) -> Option<&Expected> {
        self.cpus.get(cpu.index()).map(|cpu| &cpu.expected)
    }

    /// Begins a profile for the process with this id: each CPU arms its source in its next tick. Says which source it is.
    ///
    /// # Errors
    /// `Unsupported` for a source that is not there, or events that it cannot take; `BadArgument` for events without
    /// meaning; `Busy` while a profile is on or still disarming.
    pub fn start(
        &self,
        cpu: &Cpu,
        process: u32,
        request: SourceRequest,
        specs: &[EventSpec],
    ) -> Result<Source, Error> {
        let offered = self.offered.load(Ordering::Acquire);
        let index = source::select(self.sources, offered, request)?;
        let source = self.sources[index];
        let frequency = source::check(specs, source)?;
        let mut owner = self.control.lock(cpu);
        if !self.arming.is_idle() {
            return Err(Error::Busy);
        }
        *owner = process;
        self.source.store(index, Ordering::Relaxed);
        self.frequency.store(frequency, Ordering::Relaxed);
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

    /// A process has ended: the profile that it began ends with it, since nobody may be left who would stop it.
    pub fn process_ended(&self, cpu: &Cpu, process: u32, now: Tsc) {
        let owner = self.control.lock(cpu);
        if *owner == process {
            // If none is on, it was stopped before.
            let _ = self.arming.stop(now);
        }
    }

    /// The source that takes the samples if none is asked for.
    pub fn best(&self) -> Option<Source> {
        let offered = self.offered.load(Ordering::Acquire);
        let best = source::select(self.sources, offered, SourceRequest::Best);
        best.ok().map(|index| self.sources[index].id())
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
            frequency: self.frequency.load(Ordering::Relaxed),
            cpus: self.cpus.len() as u64,
            counting: match source.map(|source| source.trigger()) {
                Some(Trigger::Counter) => self.counting.load(Ordering::Relaxed),
                _ => 0,
            },
            best: self.best().map_or(0, |best| best as u64),
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
        threads: T,
    ) -> Wake {
        let duty = self.arming.duty(cpu);
        if duty == Duty::Rest {
            return Wake::No;
        }
        let Some(state) = self.cpus.get(cpu.index()) else {
            return Wake::No;
        };
        match (duty, self.source()) {
            (Duty::Rest, _) | (Duty::Arm | Duty::Sample, None) => Wake::No,
            (Duty::Arm, Some(source)) => {
                state.announced.store(state.ring.head(), Ordering::Relaxed);
                state.counters.run_begins();
                self.arm(state, source, machine);
                phase_changed(self.arming.armed(cpu, machine.tsc()))
            }
            (Duty::Sample, Some(source)) => {
                match source.trigger() {
                    Trigger::Tick => {
                        state.counters.missed(missed);
                        self.sample_in_tick(state, at, machine, threads);
                    }
                    Trigger::Own if source.is_lost(cpu) => state.ask_own(machine),
                    Trigger::Counter => state.look(machine),
                    Trigger::Own | Trigger::Neighbour => {}
                }
                ring_filled(state)
            }
            (Duty::Disarm, source) => {
                // None has run where the proof is what has to end.
                if let Some(source) = source {
                    self.disarm(state, source, machine);
                }
                // While an NMI of the counter can still come, this CPU has not disarmed.
                if state.late.tick() {
                    return Wake::No;
                }
                phase_changed(self.arming.disarmed(cpu))
            }
        }
    }

    /// The source of the run that is on, or was last.
    #[inline]
    fn source(&self) -> Option<&'static dyn SampleSource> {
        self.sources
            .get(self.source.load(Ordering::Relaxed))
            .copied()
    }
}

/// A bit for each of the first CPUs.
pub(super) const fn mask(cpus: usize) -> u64 {
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

fn add(sum: &mut SampleCounters, more: SampleCounters) {
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
        asked,
        delay,
        delay_max,
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
    sum.asked += asked;
    sum.delay += delay;
    sum.delay_max = sum.delay_max.max(delay_max);
}
