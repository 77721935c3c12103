//! The driver: what `profd` may ask of it, and what each CPU does for it in its tick.
//!
//! [`Driver::on_tick`] and [`Driver::on_nmi`] are the sampling path; its rules are in [`super`]. Start, stop and status are system
//! calls: they take the control lock, which no tick and no NMI does.

use super::arming::{Arming, Duty};
use super::counters::Counters;
use super::expected::{Expected, Purpose};
use super::interrupted::{Context, Interrupted};
use super::layout::KernelMap;
use super::machine::Machine;
use super::record::{self, Place};
use super::source::{self, SampleSource, Trigger};
use super::threads::Threads;
use crate::apic::timer::DueSample;
use crate::base::addr::Tsc;
use crate::base::cpu::{CPUS_MAX, Cpu, CpuId};
use crate::base::lock::{Lock, rank};
use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering, compiler_fence};
use ipc::abi::Error;
use ipc::abi::profile::{EventSpec, ProfilerStatus, SampleCounters, Source, SourceRequest};
use sample_ring::Writer;

/// What the driver keeps for a CPU, made at boot and kept for the life of the system.
#[derive(Debug)]
pub struct CpuState {
    ring: Writer<'static>,
    /// What takes this CPU's samples, or [`DISARMED`]. Set before this CPU's source starts and cleared after it stopped, by this
    /// CPU. So only one of its tick and its NMI writes to the ring, whatever is still on its way from the run before.
    pub(super) armed: AtomicU8,
    expected: Expected,
    counters: Counters,
    /// TSC until which this CPU has itself again, after a sample.
    rests_until: AtomicU64,
    /// Records written when `profd` was last woken.
    announced: AtomicU64,
}

/// TSC ticks that no rest takes, some milliseconds: a CPU whose counter is so far ahead is not waited for.
const REST_MAX: u64 = 1 << 24;

/// No [`Trigger`].
pub(super) const DISARMED: u8 = 0;

impl CpuState {
    /// The state of a CPU with this ring.
    #[must_use]
    pub fn new(ring: Writer<'static>) -> Self {
        Self {
            ring,
            armed: AtomicU8::new(DISARMED),
            expected: Expected::default(),
            counters: Counters::default(),
            rests_until: AtomicU64::new(0),
            announced: AtomicU64::new(0),
        }
    }

    #[inline]
    fn is_armed(&self, trigger: Trigger) -> bool {
        self.armed.load(Ordering::Relaxed) == trigger as u8
    }

    /// Whether this CPU has done nothing but take a sample for too long to take another: it gets as long for itself as that took.
    fn rests(&self, now: Tsc) -> bool {
        let rest = self.rests_until.load(Ordering::Relaxed);
        (1..REST_MAX).contains(&rest.wrapping_sub(now.0))
    }

    /// Has this CPU's own source cause an NMI. If one is announced already, by a run that ended before it came, that is this one.
    #[inline]
    fn ask_own(&self, source: &dyn SampleSource, cpu: CpuId) {
        let _ = self.expected.announce(Purpose::Sample);
        let missed = source.next(cpu);
        if missed > 0 {
            self.counters.missed(missed);
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
    /// Bit per source that works.
    offered: AtomicU64,
    map: KernelMap,
    arming: Arming,
    /// Index of the source of the run, or the last one; beyond the sources before the first. Written before a run begins.
    source: AtomicUsize,
    /// Nominal samples per second of that run; likewise.
    frequency: AtomicU64,
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
                state.counters.run_begins();
                state.armed.store(source.trigger() as u8, Ordering::Relaxed);
                // An interrupt of the source on this CPU finds `armed` set.
                compiler_fence(Ordering::SeqCst);
                if source.trigger() == Trigger::Own {
                    let _ = state.expected.announce(Purpose::Sample);
                }
                source.arm(cpu, self.frequency.load(Ordering::Relaxed));
                phase_changed(self.arming.armed(cpu, machine.tsc()))
            }
            Duty::Sample => {
                match source.trigger() {
                    Trigger::Tick => {
                        state.counters.missed(missed);
                        self.sample_in_tick(state, cpu, at, machine, threads);
                    }
                    Trigger::Own if source.is_lost(cpu) => state.ask_own(source, cpu),
                    Trigger::Own | Trigger::Neighbour => {}
                }
                ring_filled(state)
            }
            Duty::Disarm => {
                if state.armed.load(Ordering::Relaxed) != DISARMED {
                    source.disarm(cpu);
                    // An interrupt of the source that was on its way finds `armed` still set.
                    compiler_fence(Ordering::SeqCst);
                    state.armed.store(DISARMED, Ordering::Relaxed);
                }
                phase_changed(self.arming.disarmed(cpu))
            }
        }
    }

    /// A sample of this CPU's neighbour is due at `now`, by this CPU's timer. The CPU to send an NMI to; `None` if there is nothing to
    /// ask for, or the neighbour has not handled the last one yet, or rests from it.
    #[must_use]
    pub fn on_due(&self, cpu: CpuId, due: DueSample, now: Tsc) -> Option<CpuId> {
        let state = self.cpus.get(cpu.index())?;
        if !state.is_armed(Trigger::Neighbour) {
            return None;
        }
        state.counters.asked(due);
        let next = cpu.index() + 1;
        let next = if next == self.cpus.len() { 0 } else { next };
        if self.cpus[next].rests(now) {
            state.counters.throttled();
            None
        } else if self.cpus[next].expected.announce(Purpose::Sample) {
            Some(CpuId(next as u8))
        } else {
            state.counters.missed(1);
            None
        }
    }

    /// This CPU's timer has put the next sample off: asking for the last one took it too long.
    pub fn put_off(&self, cpu: CpuId) {
        if let Some(state) = self.cpus.get(cpu.index()) {
            state.counters.throttled();
        }
    }

    /// An NMI on this CPU, with what it interrupted. False if nothing here asked for it.
    #[inline]
    pub fn on_nmi<M: Machine, T: Threads>(
        &self,
        cpu: CpuId,
        at: impl Context,
        machine: &M,
        threads: &T,
    ) -> bool {
        let Some(state) = self.cpus.get(cpu.index()) else {
            return false;
        };
        match state.expected.claim() {
            None => return false,
            Some(Purpose::Proof) => return true,
            Some(Purpose::Sample) => {}
        }
        let own = state.is_armed(Trigger::Own);
        if !own && !state.is_armed(Trigger::Neighbour) {
            state.counters.late();
            return true;
        }
        self.sample(state, cpu, at, machine, threads);
        if own && let Some(source) = self.source() {
            state.ask_own(source, cpu);
        }
        true
    }

    /// The same, apart: so that the NMI has a [`Driver::sample`] of its own, in one function with what comes before and after it.
    #[inline(never)]
    fn sample_in_tick<M: Machine, T: Threads>(
        &self,
        state: &CpuState,
        cpu: CpuId,
        at: &Interrupted,
        machine: &M,
        threads: &T,
    ) {
        self.sample(state, cpu, at, machine, threads);
    }

    #[inline(always)]
    fn sample<M: Machine, T: Threads>(
        &self,
        state: &CpuState,
        cpu: CpuId,
        at: impl Context,
        machine: &M,
        threads: &T,
    ) {
        let now = machine.tsc();
        state.counters.taken();
        let place = Place {
            cpu,
            machine,
            map: &self.map,
        };
        let findings = record::write(&state.ring, &place, now, at, threads);
        let end = machine.tsc().0;
        // Of one CPU's counter, which does not go back.
        let ticks = end.wrapping_sub(now.0);
        state
            .rests_until
            .store(end.wrapping_add(ticks), Ordering::Relaxed);
        state.counters.found(findings, ticks);
    }

    #[inline]
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
