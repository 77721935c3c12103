//! Queues of threads by priority, linked through the threads themselves: a thread is in one queue at a time, a queue costs no
//! memory of its own, and every operation is a few steps.

use super::thread::{PRIORITIES, Thread, ThreadId};
use crate::base::lock::Glance;
use crate::base::pool::Pool;
use core::sync::atomic::Ordering::Relaxed;

/// First in, first out within a priority; the highest priority first. Guarded by its owner's lock.
#[derive(Debug)]
pub struct PriorityQueue {
    /// Bit per priority that has threads.
    occupied: u32,
    heads: [u32; PRIORITIES],
    tails: [u32; PRIORITIES],
}

impl Glance for PriorityQueue {
    fn glance(&self) -> u32 {
        self.occupied
    }
}

impl PriorityQueue {
    /// Nobody waits.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            occupied: 0,
            heads: [ThreadId::NONE; PRIORITIES],
            tails: [ThreadId::NONE; PRIORITIES],
        }
    }

    /// The highest priority that waits.
    #[must_use]
    pub const fn highest(&self) -> Option<u8> {
        Self::highest_of(self.occupied)
    }

    /// The highest priority that waited when a queue looked like this from outside its lock.
    #[must_use]
    pub const fn highest_of(glance: u32) -> Option<u8> {
        match glance.checked_ilog2() {
            Some(level) => Some(level as u8),
            None => None,
        }
    }

    /// The first thread of the highest priority.
    #[must_use]
    pub fn first(&self) -> Option<ThreadId> {
        ThreadId::from_word(self.heads[self.highest()? as usize])
    }

    /// The thread behind this one.
    #[must_use]
    pub fn after(&self, threads: &Pool<Thread>, id: ThreadId) -> Option<ThreadId> {
        let thread = threads.at(id.0)?;
        ThreadId::from_word(thread.next.load(Relaxed)).or_else(|| {
            let below = self.occupied & ((1u32 << thread.queue_priority.load(Relaxed)) - 1);
            ThreadId::from_word(self.heads[below.checked_ilog2()? as usize])
        })
    }

    /// Appends a thread under a priority.
    pub fn push(&mut self, threads: &Pool<Thread>, id: ThreadId, priority: u8) {
        let level = priority as usize % PRIORITIES;
        let Some(thread) = threads.at(id.0) else {
            return;
        };
        let tail = self.tails[level];
        thread.queue_priority.store(level as u8, Relaxed);
        thread.previous.store(tail, Relaxed);
        thread.next.store(ThreadId::NONE, Relaxed);
        match ThreadId::from_word(tail).and_then(|tail| threads.at(tail.0)) {
            Some(last) => last.next.store(id.0, Relaxed),
            None => self.heads[level] = id.0,
        }
        self.tails[level] = id.0;
        self.occupied |= 1 << level;
        thread.linked.store(true, Relaxed);
    }

    /// Puts a thread before all others of its priority.
    pub fn push_front(&mut self, threads: &Pool<Thread>, id: ThreadId, priority: u8) {
        let level = priority as usize % PRIORITIES;
        let Some(thread) = threads.at(id.0) else {
            return;
        };
        let head = self.heads[level];
        thread.queue_priority.store(level as u8, Relaxed);
        thread.previous.store(ThreadId::NONE, Relaxed);
        thread.next.store(head, Relaxed);
        match ThreadId::from_word(head).and_then(|head| threads.at(head.0)) {
            Some(first) => first.previous.store(id.0, Relaxed),
            None => self.tails[level] = id.0,
        }
        self.heads[level] = id.0;
        self.occupied |= 1 << level;
        thread.linked.store(true, Relaxed);
    }

    /// Takes a thread out; it must be in this queue.
    pub fn remove(&mut self, threads: &Pool<Thread>, id: ThreadId) {
        let Some(thread) = threads.at(id.0) else {
            return;
        };
        let level = thread.queue_priority.load(Relaxed) as usize;
        let (previous, next) = (thread.previous.load(Relaxed), thread.next.load(Relaxed));
        match ThreadId::from_word(previous).and_then(|id| threads.at(id.0)) {
            Some(before) => before.next.store(next, Relaxed),
            None => self.heads[level] = next,
        }
        match ThreadId::from_word(next).and_then(|id| threads.at(id.0)) {
            Some(behind) => behind.previous.store(previous, Relaxed),
            None => self.tails[level] = previous,
        }
        if self.heads[level] == ThreadId::NONE {
            self.occupied &= !(1 << level);
        }
        thread.linked.store(false, Relaxed);
    }

    /// Takes out the first thread of the highest priority.
    pub fn pop(&mut self, threads: &Pool<Thread>) -> Option<ThreadId> {
        let id = self.first()?;
        self.remove(threads, id);
        Some(id)
    }
}

impl Default for PriorityQueue {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::pool::Slot;
    use proptest::prelude::*;

    proptest! {
        /// Against a list kept sorted by hand.
        #[test]
        fn it_is_a_stable_priority_queue(steps in prop::collection::vec((0u32..12, 0u8..32, 0u8..4), 0..200)) {
            let threads = Pool::new(Box::leak((0..12).map(|_| Slot::new(Thread::empty())).collect()));
            let (mut queue, mut model) = (PriorityQueue::new(), Vec::<(u8, u32)>::new());
            for (id, priority, action) in steps {
                let queued = model.iter().position(|entry| entry.1 == id);
                match (action, queued) {
                    (0, None) => {
                        queue.push(&threads, ThreadId(id), priority);
                        let at = model.iter().position(|entry| entry.0 < priority).unwrap_or(model.len());
                        model.insert(at, (priority, id));
                    }
                    (1, None) => {
                        queue.push_front(&threads, ThreadId(id), priority);
                        let at = model.iter().position(|entry| entry.0 <= priority).unwrap_or(model.len());
                        model.insert(at, (priority, id));
                    }
                    (2, Some(at)) => {
                        queue.remove(&threads, ThreadId(id));
                        model.remove(at);
                    }
                    _ => {
                        let first = if model.is_empty() { None } else { Some(ThreadId(model.remove(0).1)) };
                        prop_assert_eq!(queue.pop(&threads), first);
                    }
                }
                let mut order = Vec::new();
                let mut at = queue.first();
                while let Some(id) = at {
                    order.push(id.0);
                    at = queue.after(&threads, id);
                }
                prop_assert_eq!(order, model.iter().map(|entry| entry.1).collect::<Vec<_>>());
            }
        }
    }
}
