//! The way out of the kernel: the quiescent point, a step of deferred work, and the choice of what runs next.

use crate::base::regs::{Reg, SavedRegs};
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::mem::grace::Epoch;
use crate::object::thread::{State, ThreadId};
use crate::sched::load::add;
use crate::trace::Event;
use core::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst, fence};
use ipc::abi::Error;
use ipc::abi::trace::TraceKind;

/// What a CPU does after an entry.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// Restores these registers and goes to user mode.
    Run(&'static SavedRegs),
    /// Waits for an interrupt.
    Idle,
}

/// Threads that one exit tries: it ends the dead ones, and passes over one that another outranks. If there are more, the CPU
/// enters again at once.
const ROUNDS: usize = 12;
/// Threads waiting for a flush that one look goes over; the next look begins with the others.
const FLUSHED_LOOK: usize = 16;

impl<H: Hardware> Kernel<H> {
    /// Decides what this CPU does next, and puts it in place. Interrupts were off since the entry began: the longest such time is kept.
    pub fn leave(&self, cpu: &CpuState) -> Next {
        debug_assert!(cpu.token.holds_nothing(), "a lock is held at kernel exit");
        let next = self.next(cpu);
        let entered = cpu.load.entered.load(Relaxed);
        debug_assert!(entered != 0, "an entry was not announced");
        cpu.load.entered.store(0, Relaxed);
        let spent = self.hw.tsc().0.saturating_sub(entered);
        if spent > cpu.load.longest_entry.load(Relaxed) {
            cpu.load.longest_entry.store(spent, Relaxed);
        }
        next
    }

    fn next(&self, cpu: &CpuState) -> Next {
        if self.work.is_runnable() {
            self.work_step(cpu);
        }
        // After the work, which may have to wait for just this.
        if let Some(epoch) = self.grace.pending(&cpu.token) {
            self.hw.flush_all();
            self.grace.pass(&cpu.token, epoch);
            self.work.retry();
            self.wake_flushed(cpu);
        }
        for _ in 0..ROUNDS {
            let id = match cpu.current() {
                Some(id) if cpu.resched.load(Relaxed) => {
                    self.give_way(cpu, id);
                    continue;
                }
                Some(id) => id,
                None => {
                    let Some(id) = self.pick(cpu).or_else(|| self.go_idle(cpu)) else {
                        return Next::Idle;
                    };
                    self.switch_to(cpu, id);
                    self.share(cpu);
                    continue;
                }
            };
            let thread = self.thread(id);
            let process = thread.process.load(Relaxed);
            self.load_process(cpu, Some(process));
            // Who ends the process says so before he looks at where it is: he sees it here, and kicks this CPU, or this sees the end.
            if self.process(process).is_dead() {
                self.set_current(cpu, ThreadId::NONE);
                cpu.priority.store(0, Relaxed);
                thread.publish(State::Claimed);
                self.end_thread(cpu, id);
                continue;
            }
            return Next::Run(&thread.regs);
        }
        if let Some(id) = cpu.current() {
            self.give_way(cpu, id);
        }
        self.load_process(cpu, None);
        self.hw.kick(cpu.token.id());
        Next::Idle
    }

    /// Makes an owned thread the current one.
    pub(crate) fn switch_to(&self, cpu: &CpuState, id: ThreadId) {
        let thread = self.thread(id);
        thread.last_cpu.store(cpu.token.id().0, Relaxed);
        thread.publish(State::Running);
        self.set_current(cpu, id.0);
        if self.is_tracing() {
            let priority = thread.priority.load(Relaxed);
            self.record(
                cpu,
                self.event(TraceKind::Switch, id).detail(priority.into()),
            );
        }
        cpu.resched.store(false, Relaxed);
        cpu.slice_over.store(false, Relaxed);
        self.hw.set_fs_base(thread.fs_base.load(Relaxed));
        add(&cpu.load.switches, 1);
        // Who changes a thread's priority or pin does so before he looks at where it is: he sees that it runs here, and kicks this CPU,
        // or this sees the change.
        fence(SeqCst);
        self.reconsider(cpu);
    }

    /// Puts the current thread back into this CPU's queue, behind its equals if its slice is over.
    fn give_way(&self, cpu: &CpuState, id: ThreadId) {
        self.set_current(cpu, ThreadId::NONE);
        cpu.resched.store(false, Relaxed);
        cpu.priority.store(0, Relaxed);
        let front = !cpu.slice_over.swap(false, Relaxed);
        if self.enqueue(cpu, id, cpu.token.id(), front).is_none() {
            self.make_ready(cpu, id);
        }
    }

    /// Announces this CPU as idle, then looks once more: a thread made ready before the announcement was seen is taken here.
    fn go_idle(&self, cpu: &CpuState) -> Option<ThreadId> {
        self.load_process(cpu, None);
        if self.work.is_runnable() {
            self.hw.kick(cpu.token.id());
        }
        self.idle.fetch_or(cpu.token.id().bit(), SeqCst);
        fence(SeqCst);
        let found = self.pick(cpu);
        if found.is_some() {
            self.idle.fetch_and(!cpu.token.id().bit(), SeqCst);
        } else {
            if self.is_tracing() {
                self.record(cpu, Event::new(TraceKind::Idle));
            }
        }
        found
    }

    /// Every entry begins here, also one that turns out to be about nothing: an idle CPU is no longer idle, and from here on it is
    /// measured how long interrupts are off. A second call in the same entry does nothing.
    pub fn entered(&self, cpu: &CpuState) {
        if cpu.load.entered.load(Relaxed) == 0 {
            cpu.load.entered.store(self.hw.tsc().0, Relaxed);
        }
        if cpu.current.load(Relaxed) == ThreadId::NONE
            && self.idle.load(Relaxed) & cpu.token.id().bit() != 0
        {
            self.idle.fetch_and(!cpu.token.id().bit(), SeqCst);
        }
    }

    /// Loads a process's space, or the kernel's own. A CPU is in a process's `active` mask from before it loads the
    /// space until after it has left it, so that who changes the tables knows whom to wait for.
    fn load_process(&self, cpu: &CpuState, slot: Option<u32>) {
        let loaded = cpu.loaded.load(Relaxed);
        let wanted = slot.unwrap_or(u32::MAX);
        if loaded == wanted {
            return;
        }
        let root = slot.and_then(|slot| {
            let process = self.process(slot);
            process.active.fetch_or(cpu.token.id().bit(), SeqCst);
            process.root()
        });
        self.hw.load_space(root);
        if loaded != u32::MAX {
            let left = self.process(loaded);
            left.active.fetch_and(!cpu.token.id().bit(), SeqCst);
            if left.is_dead() {
                self.work.retry();
            }
        }
        cpu.loaded.store(wanted, Relaxed);
    }

    /// Leaves the space of a process that this CPU no longer runs.
    pub(crate) fn unload(&self, cpu: &CpuState) {
        self.load_process(cpu, None);
    }

    /// Wakes threads whose unmapping every CPU has seen. Those that still wait go to the end of the queue, so that nobody who is
    /// done waits behind them.
    pub(crate) fn wake_flushed(&self, cpu: &CpuState) {
        let mut passed_over = None;
        for _ in 0..FLUSHED_LOOK {
            let mut waiters = self.shootdown.lock(&cpu.token);
            let Some(id) = waiters.first().filter(|&id| passed_over != Some(id)) else {
                return;
            };
            waiters.remove(&self.pools.threads, id);
            let thread = self.thread(id);
            let epoch = Epoch::from_raw(thread.awaited_epoch.load(Relaxed));
            let cpus = thread.awaited_cpus.load(Relaxed);
            if !self.grace.passed_by(cpus, epoch) {
                waiters.push(&self.pools.threads, id, 0);
                passed_over = passed_over.or(Some(id));
                continue;
            }
            let seen = thread.status();
            let claimed = seen.state() == State::Unmapping && thread.claim(seen);
            drop(waiters);
            if claimed {
                // The answer was known before the wait.
                let answer = Error::from_raw(thread.regs.get(Reg::Rax)).map_or(Ok(()), Err);
                self.finish(cpu, id, answer);
            }
        }
    }
}
