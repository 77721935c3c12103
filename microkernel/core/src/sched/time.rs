//! Time used: charged at each switch, and read while it passes.

use super::meter::Charged;
use crate::base::cpu::CpuId;
use crate::calls::Stop;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::Thread;
use crate::object::thread::ThreadId;
use core::sync::atomic::Ordering::Relaxed;

/// How often a look that a switch on the other CPU disturbed is repeated; then the call is made again.
const LOOKS: usize = 4;

/// What a CPU did with its time until now, in TSC ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuTime {
    pub(crate) idle: u64,
    pub(crate) busy: u64,
    /// When it began.
    pub(crate) started: u64,
    /// Now.
    pub(crate) now: u64,
}

impl<H: Hardware> Kernel<H> {
    /// Charges the time since the last switch to who had it, and makes another thread, or none, the current one.
    pub(crate) fn set_current(&self, cpu: &CpuState, next: u32) {
        let current = cpu.current();
        let now = self.hw.tsc().0;
        cpu.load.meter.charge(now, current.is_none(), |spent| {
            if let Some(id) = current {
                super::load::add(&self.thread(id).cpu_ticks, spent);
            }
            cpu.current.store(next, Relaxed);
        });
    }

    /// A CPU's time.
    ///
    /// # Errors
    /// `Restart` if it switches just now.
    pub(crate) fn cpu_time(&self, there: &CpuState) -> Result<CpuTime, Stop> {
        for _ in 0..LOOKS {
            let seen = (there.load.meter).look(|| (there.current(), self.hw.tsc().0));
            let Some((charged, (current, now))) = seen else {
                continue;
            };
            let Charged {
                mut idle,
                mut busy,
                started,
                until,
            } = charged;
            // The TSC of the CPU that asks may be behind.
            let now = now.max(until);
            match current {
                Some(_) => busy += now - until,
                None => idle += now - until,
            }
            return Ok(CpuTime {
                idle,
                busy,
                started,
                now,
            });
        }
        Err(Stop::Restart)
    }

    /// What a thread ran until now, and now, in TSC ticks. It runs nowhere but on the CPU that it names; if it names the same one
    /// before and after, it ran nowhere else in between.
    ///
    /// # Errors
    /// `Restart` if that CPU switches just now, or the thread moves.
    pub(crate) fn thread_time(&self, id: ThreadId, thread: &Thread) -> Result<(u64, u64), Stop> {
        for _ in 0..LOOKS {
            let named = thread.last_cpu.load(Relaxed);
            let there = self.cpu(CpuId(named));
            let seen = there.load.meter.look(|| {
                let ran = thread.cpu_ticks.load(Relaxed);
                (ran, there.current() == Some(id), self.hw.tsc().0)
            });
            let Some((charged, (ran, runs, now))) = seen else {
                continue;
            };
            if thread.last_cpu.load(Relaxed) != named {
                continue;
            }
            let now = now.max(charged.until);
            let running = if runs { now - charged.until } else { 0 };
            return Ok((ran + running, now));
        }
        Err(Stop::Restart)
    }
}
