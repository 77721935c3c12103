//! The arming protocol: how a profile starts and ends on every CPU without anyone waiting for anyone.
//!
//! ```text
//! Idle --start--> Arming --last CPU armed--> Open --stop--> Disarming --last CPU disarmed--> Idle
//!                    '-----------------------stop-------------^
//! ```
//! After the boot it stands at Disarming if a CPU may still get an NMI of its counter's proof ([`Arming::begin_disarming`]).
//!
//! Start and stop are system calls; everything else happens in ticks, each CPU acting for itself. `control` is the one
//! word that a tick reads when no profile runs. It holds the run's number beside the phase, so that a CPU's
//! transition is a compare-and-swap that cannot mistake one run for another.
//!
//! Two masks tell who has done what: `unarmed` and `undisarmed`, filled by start, and each CPU clears its own bit in each of
//! them once a run. Every CPU clears its bit in `undisarmed`, even one that stop overtook before it armed. So in Idle no CPU
//! has anything of the last run left to do, and start may fill the masks anew; and no CPU arms after Idle.
//!
//! # Ordering
//! - Start fills the masks and what else describes the run, then stores `control` with release. A tick that reads `control`
//!   and finds a run passes an acquire fence before it looks at the rest. A CPU never acts on an old run: it saw that
//!   run's end itself, or that run is not over.
//! - A CPU clears its bit by a read-modify-write with acquire and release. These form one release sequence, so whoever
//!   clears the last bit has everything before it that the other CPUs did before they cleared theirs, and passes it on with
//!   the phase: all sources run before Open is seen, all have stopped before Idle is seen.
//! - Exactly one CPU clears the last bit, so exactly one tries the transition. Open loses against a stop that came first.
//!   Idle has no rival.

use crate::base::addr::Tsc;
use crate::base::cpu::CpuId;
use ipc::abi::profile::Phase;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering, fence};

const PHASE_BITS: u32 = 2;

/// Phase and number of a run, as `control` holds them.
const fn word(run: u64, phase: Phase) -> u64 {
    run << PHASE_BITS | phase as u64
}
const fn run_of(word: u64) -> u64 {
    word >> PHASE_BITS
}
const fn phase_of(word: u64) -> Phase {
    match Phase::from_raw(word & ((1 << PHASE_BITS) - 1)) {
        Some(phase) => phase,
        // There are four phases, and two bits hold four values.
        None => Phase::Idle,
    }
}

/// What a CPU has to do in its tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// Nothing.
    Rest,
    /// Start its source, then say so with [`Arming::armed`].
    Arm,
    /// Its source runs.
    Sample,
    /// Stop its source if it runs, then say so with [`Arming::disarmed`].
    Disarm,
}

/// Who is armed.
#[derive(Debug)]
pub(super) struct Arming {
    control: AtomicU64,
    unarmed: AtomicU64,
    undisarmed: AtomicU64,
    /// TSC at which the last CPU armed and at which stop was asked, in the last run; 0 if that has not happened.
    opened: AtomicU64,
    closed: AtomicU64,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub phase: Phase,
    /// Bit per CPU that the phase waits for.
    pub stragglers: u64,
    pub opened: u64,
    pub closed: u64,
}

impl Arming {
    pub(super) fn new() -> Self {
        Self {
            control: AtomicU64::new(word(0, Phase::Idle)),
            unarmed: AtomicU64::new(0),
            undisarmed: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            closed: AtomicU64::new(0),
        }
    }

    /// Whether a run is on. Start asks before it changes what describes a run.
    pub(super) fn is_idle(&self) -> bool {
        phase_of(self.control.load(Ordering::Acquire)) == Phase::Idle
    }

    /// Begins a run on these CPUs. The caller holds the control lock and saw [`Arming::is_idle`].
    pub(super) fn start(&self, cpus: u64) {
        self.unarmed.store(cpus, Ordering::Relaxed);
        self.undisarmed.store(cpus, Ordering::Relaxed);
        self.opened.store(0, Ordering::Relaxed);
        self.closed.store(0, Ordering::Relaxed);
        let run = run_of(self.control.load(Ordering::Relaxed)) + 1;
        self.control
            .store(word(run, Phase::Arming), Ordering::Release);
    }

    /// Before there was a run: these CPUs have to rest as after one. None of them ticks yet.
    pub(super) fn begin_disarming(&self, cpus: u64) {
        if cpus != 0 {
            self.undisarmed.store(cpus, Ordering::Relaxed);
            self.control
                .store(word(0, Phase::Disarming), Ordering::Release);
        }
    }

    /// Ends the run. False if none is on. Stopping one that is already ending changes nothing. The caller holds the control
    /// lock.
    pub(super) fn stop(&self, now: Tsc) -> bool {
        let seen = self.control.load(Ordering::Relaxed);
        match phase_of(seen) {
            Phase::Idle => return false,
            Phase::Disarming => return true,
            // All that may happen meanwhile is that the window opens, and that makes no difference.
            Phase::Arming | Phase::Open => {}
        }
        self.closed.store(now.0, Ordering::Relaxed);
        self.control
            .swap(word(run_of(seen), Phase::Disarming), Ordering::AcqRel);
        true
    }

    /// What this CPU has to do. One relaxed load when no run is on.
    pub(super) fn duty(&self, cpu: CpuId) -> Duty {
        let phase = phase_of(self.control.load(Ordering::Relaxed));
        if phase == Phase::Idle {
            return Duty::Rest;
        }
        fence(Ordering::Acquire);
        let waits = |mask: &AtomicU64| mask.load(Ordering::Relaxed) & cpu.bit() != 0;
        match phase {
            Phase::Idle => Duty::Rest,
            Phase::Disarming if waits(&self.undisarmed) => Duty::Disarm,
            Phase::Disarming => Duty::Rest,
            Phase::Arming if waits(&self.unarmed) => Duty::Arm,
            Phase::Arming | Phase::Open => Duty::Sample,
        }
    }

    /// This CPU's source runs. True if that opened the window.
    pub(super) fn armed(&self, cpu: CpuId, now: Tsc) -> bool {
        let last = Self::clear(&self.unarmed, cpu);
        if last {
            self.opened.store(now.0, Ordering::Relaxed);
        }
        last && self.turn(Phase::Arming, Phase::Open)
    }

    /// This CPU's source has stopped, or never ran. True if that ended the run.
    pub(super) fn disarmed(&self, cpu: CpuId) -> bool {
        Self::clear(&self.undisarmed, cpu) && self.turn(Phase::Disarming, Phase::Idle)
    }

    /// Where the last run stands. The caller holds the control lock.
    pub(super) fn standing(&self) -> Standing {
        let phase = phase_of(self.control.load(Ordering::Acquire));
        let stragglers = match phase {
            Phase::Idle | Phase::Open => 0,
            Phase::Arming => self.unarmed.load(Ordering::Relaxed),
            Phase::Disarming => self.undisarmed.load(Ordering::Relaxed),
        };
        Standing {
            phase,
            stragglers,
            opened: self.opened.load(Ordering::Relaxed),
            closed: self.closed.load(Ordering::Relaxed),
        }
    }

    /// Clears a CPU's bit; true if it was the last one.
    fn clear(mask: &AtomicU64, cpu: CpuId) -> bool {
        mask.fetch_and(!cpu.bit(), Ordering::AcqRel) == cpu.bit()
    }

    fn turn(&self, from: Phase, to: Phase) -> bool {
        // The run is the caller's own: it cannot end before the caller has disarmed, which it has not, or just did.
        let run = run_of(self.control.load(Ordering::Relaxed));
        self.control
            .compare_exchange(
                word(run, from),
                word(run, to),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
    }
}

#[cfg(all(test, loom))]
mod races;
