//! Priority follows the serving links: a server runs at its caller's priority if that is higher, and a caller that waits in
//! a queue raises the threads that serve the endpoint, and those that they wait for, at most [`DEPTH_MAX`] deep.

use crate::base::pool::Ref;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::endpoint::SERVERS_MAX;
use crate::object::thread::{State, Thread, ThreadId};
use core::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst, fence};

/// How far a queued caller's priority reaches.
pub const DEPTH_MAX: u8 = 8;
/// Threads that one call raises at most; a wider system is raised by the calls that follow.
const THREADS_MAX: usize = 32;

/// Threads to be raised, each with its distance from the caller.
pub(crate) struct Raise {
    priority: u8,
    todo: heapless::Vec<(ThreadId, u8), THREADS_MAX>,
}

impl Raise {
    /// All these threads, at distance one.
    pub(crate) fn all(threads: &heapless::Vec<ThreadId, SERVERS_MAX>, priority: u8) -> Self {
        Self {
            priority,
            todo: threads.iter().map(|&id| (id, 1)).collect(),
        }
    }
    fn push(&mut self, id: ThreadId, depth: u8) {
        if depth <= DEPTH_MAX {
            // A full list means that the bound on threads is reached.
            let _ = self.todo.push((id, depth));
        }
    }
}

impl<H: Hardware> Kernel<H> {
    /// The priority that a thread has by itself, by whom it serves, and by who waits at the endpoint where it received last.
    pub(crate) fn due_priority(&self, cpu: &CpuState, thread: &Thread) -> u8 {
        let own = thread.base_priority.load(Relaxed);
        let lent = thread
            .served()
            .map(|(client, sequence)| (self.thread(client), sequence))
            .filter(|(client, sequence)| client.status().sequence() == *sequence)
            .map_or(0, |(client, _)| client.priority.load(Relaxed));
        let waiting = Ref::unpack(thread.receives_from.load(Relaxed))
            .and_then(|reference| self.pools.endpoints.get(reference))
            .and_then(|endpoint| endpoint.queues.lock(&cpu.token).callers.highest())
            .unwrap_or(0);
        own.max(lent).max(waiting)
    }

    /// Gives a thread the priority that is due to it, for whom it serves has changed, or what it was given.
    pub(crate) fn set_priority(&self, cpu: &CpuState, thread: &Thread) {
        thread
            .priority
            .store(thread.base_priority.load(Relaxed), Relaxed);
        // Who raises it has made known why before he does so: that is seen here, or what he does is not undone.
        fence(SeqCst);
        let due = self.due_priority(cpu, thread);
        thread.priority.fetch_max(due, Relaxed);
    }

    /// The same for the current thread.
    pub(crate) fn own_priority(&self, cpu: &CpuState, thread: &Thread) {
        self.set_priority(cpu, thread);
        self.reconsider(cpu);
    }

    /// Raises threads, one lock at a time. A thread's priority is written before it is looked at: who changes what it does in
    /// between uses the new one. One that runs goes on; what its CPU shows of it is its CPU's to change.
    pub(crate) fn raise(&self, cpu: &CpuState, mut raise: Raise) {
        let mut at = 0;
        while let Some(&(id, depth)) = raise.todo.get(at) {
            at += 1;
            let thread = self.thread(id);
            if thread.priority.fetch_max(raise.priority, Relaxed) >= raise.priority {
                continue;
            }
            // The partner of the fences in `call`, `enqueue` and `set_priority`: they see the priority, or this sees the status that was
            // given before.
            fence(SeqCst);
            match thread.status().state() {
                State::Ready => self.requeue(cpu, id),
                State::Called => {
                    if let Some(server) = ThreadId::from_word(thread.server.load(Relaxed)) {
                        raise.push(server, depth + 1);
                    }
                }
                State::Queued => self.raise_queued(cpu, id, &mut raise, depth),
                _ => {}
            }
        }
    }

    /// Moves a ready thread to its new place in its run queue.
    fn requeue(&self, cpu: &CpuState, id: ThreadId) {
        if self.unqueue(cpu, id) {
            self.make_ready(cpu, id);
        }
    }

    /// Moves a queued caller to its new place, and goes on to the servers it waits for.
    fn raise_queued(&self, cpu: &CpuState, id: ThreadId, raise: &mut Raise, depth: u8) {
        let thread = self.thread(id);
        let Some(endpoint) = Ref::unpack(thread.blocked_on.load(Relaxed))
            .and_then(|reference| self.pools.endpoints.get(reference))
        else {
            return;
        };
        let mut queues = endpoint.queues.lock(&cpu.token);
        // It may wait elsewhere by now: the status is read first, and the place was written before it.
        let queued = thread.status().state() == State::Queued && thread.linked.load(Relaxed);
        let here = Ref::unpack(thread.blocked_on.load(Relaxed))
            .and_then(|reference| self.pools.endpoints.get(reference))
            .is_some_and(|there| core::ptr::eq(there, endpoint));
        if queued && here {
            queues.callers.remove(&self.pools.threads, id);
            queues.callers.push(&self.pools.threads, id, raise.priority);
            for &server in &queues.servers {
                raise.push(server, depth + 1);
            }
        }
    }
}
