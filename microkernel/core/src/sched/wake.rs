//! Blocking and waking: the two ends of every wait.

use crate::base::addr::Nanos;
use crate::base::cpu::CpuId;
use crate::base::pool::Ref;
use crate::base::regs::Reg;
use crate::calls::SYSCALL_BYTES;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::thread::{ANY_CPU, State, ThreadId};
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::trace::TraceKind;
use ipc::abi::{Error, NEVER};

/// Deadlines that one timer interrupt serves; more are served by the next, at once.
const DUE_MAX: usize = 16;
/// A deadline that met a claimed thread is looked at again after this time.
pub(crate) const RETRY_NANOS: u64 = 20_000;

impl<H: Hardware> Kernel<H> {
    /// Whether a deadline has come: who would wait until then goes on at once, and no timer is set for it.
    pub(crate) fn is_past(&self, deadline: u64) -> bool {
        deadline != NEVER && deadline <= self.now().0
    }

    /// Blocks the current thread, which is already in the queue it waits in, under that queue's lock. After this it may run
    /// anywhere: the caller touches it no more.
    pub(crate) fn block(&self, cpu: &CpuState, id: ThreadId, state: State, deadline: u64) {
        let thread = self.thread(id);
        if self.is_tracing() {
            self.record(
                cpu,
                self.event(TraceKind::Block, id)
                    .detail(state.public() as u32)
                    .words(deadline, thread.blocked_on.load(Relaxed)),
            );
        }
        self.set_current(cpu, ThreadId::NONE);
        cpu.priority.store(0, Relaxed);
        thread.deadline.store(deadline, Relaxed);
        if deadline != NEVER {
            self.arm(cpu, id, thread.next_sequence(), Nanos(deadline));
        }
        thread.publish(state);
    }

    /// Arms a thread's deadline for the wait with this sequence number, on this CPU.
    fn arm(&self, cpu: &CpuState, id: ThreadId, sequence: u64, deadline: Nanos) {
        let thread = self.thread(id);
        let mut timers = cpu.timers.lock(&cpu.token);
        thread.timer_cpu.store(cpu.token.id().0, Relaxed);
        thread.timer_sequence.store(sequence, Relaxed);
        timers.set(id.0, deadline);
        if let Some(next) = timers.next() {
            self.hw.set_timer(next);
        }
    }

    /// Disarms the deadline of a thread that the caller owns.
    pub(crate) fn disarm(&self, cpu: &CpuState, id: ThreadId) {
        let thread = self.thread(id);
        let armed_on = thread.timer_cpu.load(Relaxed);
        if armed_on == ANY_CPU {
            return;
        }
        let there = self.cpu(CpuId(armed_on));
        let mut timers = there.timers.lock(&cpu.token);
        timers.cancel(id.0);
        thread.timer_cpu.store(ANY_CPU, Relaxed);
    }

    /// Takes a thread that the caller has claimed from `was` out of the queue it waited in.
    pub(crate) fn unlink(&self, cpu: &CpuState, id: ThreadId, was: State) {
        let thread = self.thread(id);
        let threads = &self.pools.threads;
        let on = thread.blocked_on.load(Relaxed);
        match was {
            State::Receiving | State::Queued => {
                let endpoint =
                    Ref::unpack(on).and_then(|reference| self.pools.endpoints.get(reference));
                if let Some(endpoint) = endpoint {
                    let mut queues = endpoint.queues.lock(&cpu.token);
                    if thread.linked.load(Relaxed) {
                        match was {
                            State::Receiving => queues.receivers.remove(threads, id),
                            _ => queues.callers.remove(threads, id),
                        }
                    }
                }
            }
            State::Waiting => {
                let notification =
                    Ref::unpack(on).and_then(|reference| self.pools.notifications.get(reference));
                if let Some(notification) = notification {
                    let mut bits = notification.bits.lock(&cpu.token);
                    if thread.linked.load(Relaxed) {
                        bits.waiters.remove(threads, id);
                    }
                }
            }
            State::Unmapping => {
                let mut waiters = self.shootdown.lock(&cpu.token);
                if thread.linked.load(Relaxed) {
                    waiters.remove(threads, id);
                }
            }
            _ => {}
        }
    }

    /// Ends the wait of a claimed thread, out of its queue, with a status; other registers are as the waker left them.
    pub(crate) fn finish(&self, cpu: &CpuState, id: ThreadId, status: Result<(), Error>) {
        self.settle(cpu, id, status);
        self.make_ready(cpu, id);
    }

    /// As [`finish`](Self::finish), but the caller decides where the thread goes.
    pub(crate) fn settle(&self, cpu: &CpuState, id: ThreadId, status: Result<(), Error>) {
        self.disarm(cpu, id);
        let thread = self.thread(id);
        thread.server.store(ThreadId::NONE, Relaxed);
        thread.blocked_on.store(0, Relaxed);
        thread
            .regs
            .set(Reg::Rax, status.map_or_else(|error| error as u64, |()| 0));
    }

    /// Has a claimed thread, out of its queue, make its call again: for what woke it there is nothing to tell it.
    pub(crate) fn again(&self, cpu: &CpuState, id: ThreadId) {
        let regs = &self.thread(id).regs;
        let call = regs.get(Reg::Rax);
        self.settle(cpu, id, Ok(()));
        regs.set(Reg::Rax, call);
        regs.set(Reg::Rip, regs.get(Reg::Rip) - SYSCALL_BYTES);
        self.make_ready(cpu, id);
    }

    /// Fails the call that a thread is in, if it still is.
    pub(crate) fn fail_call(&self, cpu: &CpuState, client: (ThreadId, u64), error: Error) {
        if self.thread(client.0).claim_call(client.1) {
            self.finish(cpu, client.0, Err(error));
        }
    }

    /// Serves the deadlines that have come. A thread's deadline is in a queue exactly while the thread names that queue's CPU, and
    /// both change under the queue's lock: so who ends a wait finds its deadline, and one that is found is for the wait
    /// that is on.
    pub(crate) fn serve_deadlines(&self, cpu: &CpuState) {
        let now = self.now();
        for _ in 0..DUE_MAX {
            let mut timers = cpu.timers.lock(&cpu.token);
            let Some(item) = timers.pop_due(now) else {
                break;
            };
            let Some(thread) = self.pools.threads.at(item) else {
                drop(timers);
                self.expire_timer(cpu, item - self.pools.threads.len());
                continue;
            };
            let seen = thread.status();
            let meant = seen.sequence() == thread.timer_sequence.load(Relaxed);
            if meant && seen.state() == State::Claimed {
                // Whoever holds it may put it back into the same wait (a call that is received): the deadline stays.
                timers.set(item, Nanos(now.0.saturating_add(RETRY_NANOS)));
                continue;
            }
            let claimed = meant && thread.claim(seen);
            if meant && !claimed {
                // Its status changed just now: look again at once.
                timers.set(item, now);
                continue;
            }
            thread.timer_cpu.store(ANY_CPU, Relaxed);
            drop(timers);
            if claimed {
                self.unlink(cpu, ThreadId(item), seen.state());
                // Who sleeps waits for just this.
                let status = match seen.state() {
                    State::Sleeping => Ok(()),
                    _ => Err(Error::TimedOut),
                };
                self.finish(cpu, ThreadId(item), status);
            }
        }
        if let Some(next) = cpu.timers.lock(&cpu.token).next() {
            self.hw.set_timer(next);
        }
    }
}
