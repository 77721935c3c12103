//! Which CPU is sampled by what: by its own counter if that has proved itself, by its neighbour if not, and how each starts and
//! stops.

use super::cpu::{CpuState, DISARMED};
use super::driver::{Driver, mask};
use super::machine::Machine;
use super::own::{BOTH, OwnCounter};
use super::source::{SampleSource, Trigger};
use crate::base::cpu::CpuId;
use crate::pmu::Finding;
use core::sync::atomic::{Ordering, compiler_fence};
use ipc::abi::monitor::{Interface, MonitorInfo};
use zerocopy::FromZeros;

impl Driver {
    /// Keeps what a CPU's proof found; once for each.
    pub fn publish(&self, cpu: CpuId, finding: Finding) {
        let Some(state) = self.cpus.get(cpu.index()) else {
            return;
        };
        if let Some(counter) = finding.counter {
            let hz = finding.info.hz;
            state.own.call_once(|| OwnCounter::new(counter, hz));
        }
        state.monitor.call_once(|| finding.info);
    }

    /// Once the CPUs have published what they found, and timers are offered or are not: offers the counters if every CPU has one
    /// that works, or can be sampled by its neighbour. Those that may still get an NMI of their proof take no part in a run before
    /// that is over.
    pub fn offer_counters(&self) {
        let is_owed = |cpu: &&CpuState| cpu.late.may_come();
        let owed = self.cpus.iter().filter(is_owed).map(|cpu| cpu.id.bit());
        self.arming.begin_disarming(owed.sum());
        let counted_by = |(index, cpu): (usize, &CpuState)| {
            cpu.own.get()?;
            let interface = Interface::from_raw(cpu.monitor.get()?.interface)?;
            Some((index, interface.source()?))
        };
        let working = || self.cpus.iter().enumerate().filter_map(counted_by);
        let Some((_, source)) = working().next() else {
            return;
        };
        let counting = working()
            .filter(|&(_, other)| other == source)
            .map(|(index, _)| 1 << index)
            .sum();
        if counting == mask(self.cpus.len()) || self.offered_neighbours().is_some() {
            self.counting.store(counting, Ordering::Relaxed);
            self.offer(source, Trigger::Counter);
        }
    }

    /// The source that samples a CPU by its neighbour, if it is offered.
    fn offered_neighbours(&self) -> Option<&'static dyn SampleSource> {
        let offered = self.offered.load(Ordering::Relaxed);
        let mut sources = self.sources.iter().enumerate();
        let is_it = |&(index, source): &(usize, &&'static dyn SampleSource)| {
            source.trigger() == Trigger::Neighbour && offered >> index & 1 == 1
        };
        sources.find(is_it).map(|(_, source)| *source)
    }

    /// What a CPU has published; `None` if it has not, or there is no such CPU.
    #[must_use]
    pub fn proved(&self, index: usize) -> Option<&MonitorInfo> {
        self.cpus.get(index)?.monitor.get()
    }

    /// What is known of a CPU's performance monitor: nothing, if it has not published anything. `None` if there is no such CPU.
    #[must_use]
    pub fn monitor(&self, index: usize) -> Option<MonitorInfo> {
        self.cpus.get(index)?;
        let info = self.proved(index).copied();
        Some(info.unwrap_or_else(MonitorInfo::new_zeroed))
    }

    /// An NMI of the counter may come that its proof does not wait for.
    pub fn owed(&self, cpu: CpuId) {
        if let Some(state) = self.cpus.get(cpu.index()) {
            state.late.owed(1);
        }
    }

    /// What samples a CPU in a run of a source.
    fn trigger(&self, source: &dyn SampleSource, index: usize) -> Trigger {
        match source.trigger() {
            Trigger::Counter if self.counting.load(Ordering::Relaxed) >> index & 1 == 0 => {
                Trigger::Neighbour
            }
            trigger => trigger,
        }
    }

    /// The source by which a CPU has to ask for samples of the next one in a run, if it has to.
    fn asks_by(
        &self,
        source: &'static dyn SampleSource,
        cpu: CpuId,
    ) -> Option<&'static dyn SampleSource> {
        match (source.trigger(), self.trigger(source, self.next(cpu))) {
            (Trigger::Counter, Trigger::Neighbour) => self.offered_neighbours(),
            (Trigger::Neighbour, _) => Some(source),
            _ => None,
        }
    }

    /// The CPU whose samples this one asks for.
    pub(super) const fn next(&self, cpu: CpuId) -> usize {
        let next = cpu.index() + 1;
        if next == self.cpus.len() { 0 } else { next }
    }

    /// Starts what samples a CPU, and what that CPU samples.
    pub(super) fn arm<M: Machine>(
        &self,
        state: &CpuState,
        source: &'static dyn SampleSource,
        machine: &M,
    ) {
        let (cpu, frequency) = (state.id, self.frequency.load(Ordering::Relaxed));
        let trigger = self.trigger(source, cpu.index());
        state.armed.store(trigger as u8, Ordering::Relaxed);
        // An interrupt of the source on this CPU finds `armed` set.
        compiler_fence(Ordering::SeqCst);
        match trigger {
            Trigger::Counter => {
                if let Some(own) = state.own.get() {
                    own.start(machine.monitor(), &state.intervals, frequency);
                }
            }
            Trigger::Own => {
                state.expected.announce_own();
                source.arm(cpu, frequency);
            }
            Trigger::Tick => source.arm(cpu, frequency),
            Trigger::Neighbour => {}
        }
        if let Some(neighbours) = self.asks_by(source, cpu) {
            neighbours.arm(cpu, frequency);
        }
    }

    /// Stops what runs on a CPU, if it does.
    pub(super) fn disarm<M: Machine>(
        &self,
        state: &CpuState,
        source: &'static dyn SampleSource,
        machine: &M,
    ) {
        let cpu = state.id;
        if state.armed.load(Ordering::Relaxed) == DISARMED {
            return;
        }
        if let Some(neighbours) = self.asks_by(source, cpu) {
            neighbours.disarm(cpu);
        }
        if state.is_armed(Trigger::Counter) {
            // From here on no NMI touches the counter; one that is on its way is a late one, and that is said before.
            state.late.owed(BOTH);
            compiler_fence(Ordering::SeqCst);
            state.armed.store(DISARMED, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            if let Some(own) = state.own.get() {
                own.stop(machine.monitor());
            }
            return;
        }
        if matches!(source.trigger(), Trigger::Own | Trigger::Tick) {
            source.disarm(cpu);
        }
        // An interrupt of the source that was on its way finds `armed` still set.
        compiler_fence(Ordering::SeqCst);
        state.armed.store(DISARMED, Ordering::Relaxed);
    }
}
