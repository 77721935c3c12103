//! The kernel's threads as the sampling path sees them. Its rules hold here: atomic loads, no lock, no panic.

use crate::apic::timer::DueSample;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::thread::{Status, Thread};
use crate::profile::{Context, Interrupted, Machine, Names, ThreadView, Threads, Wake};
use crate::sched::load::add;
use core::sync::atomic::Ordering::Relaxed;

/// The kernel, looked at from a CPU.
pub struct View<'k, H: Hardware + 'static> {
    kernel: &'k Kernel<H>,
    cpu: &'k CpuState,
}

impl<H: Hardware> Clone for View<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Hardware> Copy for View<'_, H> {}

impl<'a, H: Hardware> Threads for View<'a, H> {
    type Thread = &'a Thread;

    fn current(&self) -> Option<&'a Thread> {
        // No thread has the number that stands for none.
        self.kernel.pools.threads.at(self.cpu.current.load(Relaxed))
    }

    fn names(&self, thread: &'a Thread) -> Names<'_> {
        Names {
            ids: &thread.ids,
            image: &thread.image,
        }
    }

    fn view(&self, thread: &'a Thread) -> Option<ThreadView<'_>> {
        let processes = &self.kernel.pools.processes;
        let process = processes.at(thread.process.load(Relaxed))?;
        Some(ThreadView {
            names: self.names(thread),
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

impl<'k, H: Hardware + Machine> View<'k, H> {
    /// From this CPU.
    #[must_use]
    pub const fn new(kernel: &'k Kernel<H>, cpu: &'k CpuState) -> Self {
        Self { kernel, cpu }
    }

    /// An NMI on this CPU, wherever that was. False if nothing in the kernel asked for it. Obeys the rules of the sampling path.
    #[inline]
    pub fn nmi(&self, at: impl Context) -> bool {
        let Self { kernel, cpu } = self;
        add(&cpu.load.nmis, 1);
        kernel.profiler.on_nmi(cpu.sampling, at, kernel.hw, *self)
    }
}

impl<H: Hardware + Machine> Kernel<H> {
    /// This CPU's part in a profile, in its tick, before anything else changes what the tick interrupted.
    pub(crate) fn sample(&self, cpu: &CpuState, interrupted: &Interrupted, missed: u64) -> Wake {
        let id = cpu.token.id();
        let view = View::new(self, cpu);
        self.profiler
            .on_tick(id, interrupted, missed, self.hw, view)
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
