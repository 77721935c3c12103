//! Making a thread ready: choosing its CPU, queueing it, and making that CPU notice.

use crate::base::cpu::CpuId;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::queue::PriorityQueue;
use crate::object::thread::{ANY_CPU, State, Thread, ThreadId};
use core::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst, fence};
use ipc::abi::trace::TraceKind;

/// Threads of a queue that another CPU looks at, for one that it may run.
const LOOK: usize = 8;

/// Where a thread was queued.
struct Place {
    target: CpuId,
    priority: u8,
    /// Whether it may run nowhere else.
    pinned: bool,
}

impl<H: Hardware> Kernel<H> {
    /// Queues a thread that the caller owns. It may run elsewhere before this returns.
    pub(crate) fn make_ready(&self, cpu: &CpuState, id: ThreadId) {
        let thread = self.thread(id);
        // Before it may run elsewhere.
        if self.is_tracing() {
            let waker = cpu.current().map_or(0, |waker| self.tid(waker));
            self.record(cpu, self.event(TraceKind::Wake, id).words(waker, 0));
        }
        let Place {
            target,
            priority,
            pinned,
        } = self.place(cpu, id, || self.choose(cpu, thread));
        if target == cpu.token.id() {
            if priority > cpu.priority.load(Relaxed) {
                cpu.resched.store(true, Relaxed);
            }
            // A CPU that went idle while this one chose may have looked at the queues too early. One that has nothing to run
            // takes the thread itself, and shares what is left at its exit.
            if !pinned && cpu.current().is_some() {
                self.hand_to_idle(cpu, id);
            }
        } else {
            let there = self.cpu(target);
            // The partner of the fence in `reconsider`: the queue is written before the priority is read.
            fence(SeqCst);
            if there.current.load(Relaxed) == ThreadId::NONE
                || priority > there.priority.load(Relaxed)
            {
                self.hw.kick(target);
            } else if !pinned {
                // It was idle when it was chosen, and found something else meanwhile.
                self.hand_to_idle(cpu, id);
            }
        }
    }

    /// Queues an owned thread where it is pinned to, or else where `choose` says.
    fn place(&self, cpu: &CpuState, id: ThreadId, choose: impl Fn() -> CpuId) -> Place {
        loop {
            let pinned = self.thread(id).pinned.load(Relaxed);
            let target = match pinned {
                ANY_CPU => choose(),
                pinned => CpuId(pinned),
            };
            if let Some(priority) = self.enqueue(cpu, id, target, false) {
                return Place {
                    target,
                    priority,
                    pinned: pinned != ANY_CPU,
                };
            }
            // It was pinned elsewhere in this very moment. The CPU may have been taken off the idle ones for it: it looks again.
            self.hw.kick(target);
        }
    }

    /// Puts an owned thread into a CPU's run queue, as `Ready`, and says by which priority. `None` if it is pinned to another CPU: then
    /// the caller still owns it.
    pub(crate) fn enqueue(
        &self,
        cpu: &CpuState,
        id: ThreadId,
        target: CpuId,
        front: bool,
    ) -> Option<u8> {
        let thread = self.thread(id);
        let mut queue = self.cpu(target).queue.lock(&cpu.token);
        thread.queue_cpu.store(target.0, Relaxed);
        thread.publish(State::Ready);
        // Who changes its priority or pin does so before he looks at its status: he sees that it is ready, or this sees the change.
        fence(SeqCst);
        let pinned = thread.pinned.load(Relaxed);
        if pinned != ANY_CPU && pinned != target.0 {
            thread.publish(State::Claimed);
            return None;
        }
        let priority = thread.priority.load(Relaxed);
        if front {
            queue.push_front(&self.pools.threads, id, priority);
        } else {
            queue.push(&self.pools.threads, id, priority);
        }
        Some(priority)
    }

    /// An idle CPU, the one it ran on if that is idle; else this one.
    fn choose(&self, cpu: &CpuState, thread: &Thread) -> CpuId {
        let here = cpu.token.id();
        if cpu.current.load(Relaxed) == ThreadId::NONE && cpu.priority.load(Relaxed) == 0 {
            return here;
        }
        let last = thread.last_cpu.load(Relaxed);
        for _ in 0..2 {
            let idle = self.idle.load(SeqCst);
            if idle == 0 {
                return here;
            }
            let warm = idle & 1u64.checked_shl(last.into()).unwrap_or(0);
            let pick = if warm != 0 {
                CpuId(last)
            } else {
                CpuId(idle.trailing_zeros() as u8)
            };
            if self.idle.fetch_and(!pick.bit(), SeqCst) & pick.bit() != 0 {
                return pick;
            }
        }
        here
    }

    /// Moves a thread that waits in a queue to an idle CPU, if there is one. It goes into that CPU's queue: so it is seen there even if
    /// the CPU finds something else to run first. False if no CPU idles.
    fn hand_to_idle(&self, cpu: &CpuState, id: ThreadId) -> bool {
        // A CPU that goes idle says so before it looks at the queues: it is seen here, or sees what was queued.
        fence(SeqCst);
        let idle = self.idle.load(SeqCst) & !cpu.token.id().bit();
        if idle == 0 {
            return false;
        }
        let pick = CpuId(idle.trailing_zeros() as u8);
        if self.idle.fetch_and(!pick.bit(), SeqCst) & pick.bit() != 0 {
            if self.unqueue(cpu, id) {
                // It may have been pinned meanwhile. Its CPU is kicked, this one too: it may be the best thread there.
                let Place { target, .. } = self.place(cpu, id, || pick);
                if target != pick {
                    self.hw.kick(target);
                }
            }
            self.hw.kick(pick);
        }
        true
    }

    /// Moves threads that wait here and may run elsewhere to idle CPUs. Several may have become ready in one entry while this
    /// CPU, which takes only one of them, had none.
    pub(crate) fn share(&self, cpu: &CpuState) {
        fence(SeqCst);
        if self.idle.load(SeqCst) & !cpu.token.id().bit() == 0 {
            return;
        }
        let mut spare = heapless::Vec::<ThreadId, LOOK>::new();
        {
            let queue = cpu.queue.lock(&cpu.token);
            let mut at = queue.first();
            for _ in 0..LOOK {
                let Some(id) = at else { break };
                if self.thread(id).pinned.load(Relaxed) == ANY_CPU {
                    // There are no more than places.
                    let _ = spare.push(id);
                }
                at = queue.after(&self.pools.threads, id);
            }
        }
        for id in spare {
            if !self.hand_to_idle(cpu, id) {
                return;
            }
        }
    }

    /// Looks again at what may have changed behind the back of this CPU's current thread: its priority, its pin, and who waits.
    pub(crate) fn reconsider(&self, cpu: &CpuState) {
        let Some(id) = cpu.current() else { return };
        let thread = self.thread(id);
        let priority = thread.priority.load(Relaxed);
        cpu.priority.store(priority, Relaxed);
        // Who queues a thread here reads that priority after it: it sees this one, or is seen in the queue.
        fence(SeqCst);
        let pinned = thread.pinned.load(Relaxed);
        let elsewhere = pinned != ANY_CPU && pinned != cpu.token.id().0;
        let highest = PriorityQueue::highest_of(cpu.queue.glance());
        if elsewhere || highest.is_some_and(|highest| highest > priority) {
            cpu.resched.store(true, Relaxed);
        }
    }

    /// Takes a ready thread out of its run queue, if it is still in one: the caller owns it then.
    pub(crate) fn unqueue(&self, cpu: &CpuState, id: ThreadId) -> bool {
        let thread = self.thread(id);
        let Some(there) = self.cpus.get(thread.queue_cpu.load(Relaxed) as usize) else {
            return false;
        };
        let mut queue = there.queue.lock(&cpu.token);
        // Under this lock the state and the links of a thread that is queued here cannot change.
        if thread.status().state() != State::Ready
            || !thread.linked.load(Relaxed)
            || thread.queue_cpu.load(Relaxed) != there.token.id().0
        {
            return false;
        }
        queue.remove(&self.pools.threads, id);
        thread.publish(State::Claimed);
        true
    }

    /// The next thread for this CPU: the first of its own queue, else one that another CPU's queue has and that may run here.
    pub(crate) fn pick(&self, cpu: &CpuState) -> Option<ThreadId> {
        self.take_from(cpu, cpu, false).or_else(|| {
            let here = cpu.token.id().index();
            (1..self.cpus.len()).find_map(|step| {
                let there = &self.cpus[(here + step) % self.cpus.len()];
                self.take_from(cpu, there, true)
            })
        })
    }

    /// Takes the first thread from a queue; to steal, the first of the first few that is not pinned.
    fn take_from(&self, cpu: &CpuState, there: &CpuState, steal: bool) -> Option<ThreadId> {
        // Most queues are empty most of the time, and many idle CPUs look: none of them waits for another.
        if there.queue.glance() == 0 {
            return None;
        }
        let mut queue = there.queue.lock(&cpu.token);
        let mut at = queue.first()?;
        for _ in 0..LOOK {
            if !steal || self.thread(at).pinned.load(Relaxed) == ANY_CPU {
                queue.remove(&self.pools.threads, at);
                self.thread(at).publish(State::Claimed);
                return Some(at);
            }
            at = queue.after(&self.pools.threads, at)?;
        }
        None
    }
}
