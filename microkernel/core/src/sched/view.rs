//! The kernel's threads as the sampling path sees them. Its rules hold here: atomic loads, no lock, no panic.

use crate::apic::timer::DueSample;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::thread::{Status, Thread};
use crate::profile::{Context, Interrupted, Machine, ThreadView, Threads, Wake};
use crate::sched::load::add;
use core::sync::atomic::Ordering::Relaxed;

/// Threads, looked at from a CPU.
struct View<'a, H: Hardware + 'static> {
    kernel: &'a Kernel<H>,
    cpu: &'a CpuState,
}

impl<'a, H: Hardware> Threads for View<'a, H> {
    type Thread = &'a Thread;

    fn current(&self) -> Option<&'a Thread> {
        self.kernel.pools.threads.at(self.cpu.current()?.0)
    }

    fn view<'t>(&'t self, thread: &'a Thread) -> Option<ThreadView<'t>> {
        let processes = &self.kernel.pools.processes;
        let process = processes.at(thread.process.load(Relaxed))?;
        Some(ThreadView {
            pid: process.pid.load(Relaxed),
            tid: thread.tid.load(Relaxed),
            image: process.image.load(Relaxed),
            root: process.root()?,
            regs: &thread.regs,
        })
    }

    fn served(&self, thread: &'a Thread) -> Option<(&'a Thread, u64)> {
        let (client, sequence) = thread.served()?;
        // A client that is not in that very call any more has another status, and its frames are left out.
        let sequence = Status::in_call(sequence).raw();
        Some((self.kernel.pools.threads.at(client.0)?, sequence))
    }

    fn sequence(&self, thread: &'a Thread) -> u64 {
        thread.status().raw()
    }
}

impl<H: Hardware> Kernel<H> {
    /// A sample of this CPU's neighbour is due, in the timer interrupt of this one.
    pub fn sample_due(&self, cpu: &CpuState, due: DueSample) {
        self.entered(cpu);
        let now = self.hw.tsc();
        if let Some(neighbour) = self.profiler.on_due(cpu.token.id(), due, now) {
            self.hw.nmi(neighbour);
        }
    }
}

impl<H: Hardware + Machine> Kernel<H> {
    /// This CPU's part in a profile, in its tick, before anything else changes what the tick interrupted.
    pub(crate) fn sample(&self, cpu: &CpuState, interrupted: &Interrupted, missed: u64) -> Wake {
        self.profiler.on_tick(
            cpu.token.id(),
            interrupted,
            missed,
            self.hw,
            &View { kernel: self, cpu },
        )
    }

    /// An NMI on this CPU, wherever that was. False if nothing in the kernel asked for it. Obeys the rules of the sampling path.
    #[inline]
    pub fn nmi(&self, cpu: &CpuState, at: impl Context) -> bool {
        add(&cpu.load.nmis, 1);
        let threads = View { kernel: self, cpu };
        self.profiler.on_nmi(cpu.token.id(), at, self.hw, &threads)
    }

    /// Tells `profd` what the sampling path found, from outside it.
    pub(crate) fn wake_profiler(&self, cpu: &CpuState, wake: Wake) {
        if wake == Wake::No {
            return;
        }
        let watcher = *self.profiler_watcher.lock(&cpu.token);
        if let Some((notification, bits)) = watcher {
            self.set_bits(cpu, notification, bits);
        }
    }
}
