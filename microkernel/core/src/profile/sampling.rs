//! The driver's part in an NMI, and in the timer interrupt of the CPU that asks a neighbour for one. [`super`] has the rules.

use super::cpu::CpuState;
use super::driver::Driver;
use super::expected::{Purpose, Standing};
use super::interrupted::{Context, Interrupted};
use super::machine::Machine;
use super::record::{self, Place};
use super::source::Trigger;
use super::threads::Threads;
use crate::apic::timer::DueSample;
use crate::base::addr::Tsc;
use crate::base::cpu::CpuId;
use core::sync::atomic::Ordering;

impl Driver {
    /// A sample of this CPU's neighbour is due at `now`, by this CPU's timer. The CPU to send an NMI to; `None` if there is nothing to
    /// ask for, or the neighbour has not handled the last one yet, or rests from it.
    #[must_use]
    pub fn on_due(&self, cpu: CpuId, due: DueSample, now: Tsc) -> Option<CpuId> {
        let state = self.cpus.get(cpu.index())?;
        let next = self.next(cpu);
        if !self.cpus[next].is_armed(Trigger::Neighbour) {
            return None;
        }
        state.counters.asked(due);
        let next = &self.cpus[next];
        // Nobody but this CPU asks for its samples: if none is on its way now, the last one has ended, and its rest is known.
        match next.expected.standing() {
            Standing::Free if !next.rests(now) => {
                next.expected.announce(Purpose::Sample).then_some(next.id)
            }
            Standing::Free | Standing::Taken => {
                state.counters.throttled();
                None
            }
            Standing::OnItsWay => {
                state.counters.missed(1);
                None
            }
        }
    }

    /// This CPU's timer has put the next sample off: asking for the last one took it too long.
    pub fn put_off(&self, cpu: CpuId) {
        if let Some(state) = self.cpus.get(cpu.index()) {
            state.counters.throttled();
        }
    }

    /// An NMI on the CPU with this state, with what it interrupted. False if nothing here asked for it.
    #[inline]
    pub fn on_nmi<M: Machine, T: Threads>(
        &self,
        cpu: &CpuState,
        at: impl Context,
        machine: &M,
        threads: T,
    ) -> bool {
        if cpu.is_armed(Trigger::Counter) {
            return self.on_counted(cpu, at, machine, threads);
        }
        match cpu.expected.claim() {
            Some(Purpose::Sample) => {}
            Some(Purpose::Proof) => return true,
            None => return cpu.is_late(),
        }
        let own = cpu.is_armed(Trigger::Own);
        if !own && !cpu.is_armed(Trigger::Neighbour) {
            cpu.counters.late();
            cpu.expected.is_taken();
            return true;
        }
        self.sample(cpu, at, machine, threads);
        if own {
            cpu.ask_own(machine);
        } else {
            cpu.expected.is_taken();
        }
        true
    }

    /// The same on a CPU that its own counter samples: two causes may be one NMI, so each is looked for, and none keeps the other waiting.
    // One function with the NMI: it has saved the registers.
    #[inline(always)]
    fn on_counted<M: Machine, T: Threads>(
        &self,
        cpu: &CpuState,
        at: impl Context,
        machine: &M,
        threads: T,
    ) -> bool {
        let Some(own) = cpu.own.get() else {
            return false;
        };
        let overflowed = own.enter(machine.monitor());
        let announced = cpu.expected.is_pending() && cpu.is_announced(overflowed);
        if overflowed {
            self.sample(cpu, at, machine, threads);
            cpu.late.taken();
        } else if !announced && !cpu.is_late() {
            return false;
        }
        own.leave(machine.monitor(), &cpu.intervals, overflowed);
        true
    }

    /// The same, apart: so that the NMI has a [`Driver::sample`] of its own, in one function with what comes before and after it.
    #[inline(never)]
    pub(super) fn sample_in_tick<M: Machine, T: Threads>(
        &self,
        cpu: &CpuState,
        at: &Interrupted,
        machine: &M,
        threads: T,
    ) {
        self.sample(cpu, at, machine, threads);
    }

    // One function with the NMI's claim: handing over what both know would take longer.
    #[inline(always)]
    fn sample<M: Machine, T: Threads>(
        &self,
        cpu: &CpuState,
        at: impl Context,
        machine: &M,
        threads: T,
    ) {
        let now = machine.tsc();
        cpu.counters.taken();
        let place = Place {
            cpu,
            machine,
            map: &self.map,
        };
        record::write(place, now, at, threads);
        let end = machine.tsc().0;
        // Of one CPU's counter, which does not go back.
        let ticks = end.wrapping_sub(now.0);
        cpu.rests_until
            .store(end.wrapping_add(ticks), Ordering::Relaxed);
        cpu.counters.took(ticks);
    }
}
