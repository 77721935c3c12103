//! Timer interrupts and kicks.

use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::queue::PriorityQueue;
use crate::profile::{Interrupted, Machine};
use crate::sched::load::add;
use core::sync::atomic::Ordering::Relaxed;

/// Retired frames that a tick makes free at most.
const RECLAIM: u32 = 64;

impl<H: Hardware + Machine> Kernel<H> {
    /// The periodic tick, 100 a second on each CPU: samples, ends time slices, and moves on what waits for other CPUs.
    /// `missed` more were due before this one.
    pub fn tick(&self, cpu: &CpuState, interrupted: &Interrupted, missed: u64) {
        self.entered(cpu);
        let wake = self.sample(cpu, interrupted, missed);
        self.wake_profiler(cpu, wake);
        add(&cpu.load.ticks, 1);
        self.reconsider(cpu);
        self.share(cpu);
        let ready = PriorityQueue::highest_of(cpu.queue.glance());
        if ready.is_some_and(|ready| ready >= cpu.priority.load(Relaxed)) {
            cpu.slice_over.store(true, Relaxed);
            cpu.resched.store(true, Relaxed);
        }
        self.frames.try_reclaim(&cpu.token, &self.grace, RECLAIM);
        self.work.tick();
        if self.shootdown.glance() != 0 {
            self.wake_flushed(cpu);
        }
        self.serve_deadlines(cpu);
    }
}

impl<H: Hardware> Kernel<H> {
    /// The one-shot timer that [`Hardware::set_timer`] asked for.
    pub fn timer(&self, cpu: &CpuState) {
        self.entered(cpu);
        self.serve_deadlines(cpu);
    }

    /// Another CPU wants this one to pass through the kernel: to flush, to end a thread, or to take one up.
    pub fn kicked(&self, cpu: &CpuState) {
        self.entered(cpu);
        self.reconsider(cpu);
        // What was queued here, and is not above what runs, is for a CPU that idles.
        self.share(cpu);
    }

    /// This CPU begins to take part: called once on it, in the entry that ends with its first [`leave`](Kernel::leave).
    pub fn start_cpu(&self, cpu: &CpuState) {
        self.entered(cpu);
        self.grace.join(&cpu.token);
        cpu.load.meter.start(self.hw.tsc().0);
    }
}
