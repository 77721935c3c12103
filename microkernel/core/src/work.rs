//! Work that is done in bounded steps: ending threads, closing handles, freeing pages. Any CPU takes a step at its kernel exit; an
//! idle one goes on until nothing is left that can go on.

use crate::base::cpu::Cpu;
use crate::base::lock::{Glance, Shown, rank};
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::mem::grace::Epoch;
use core::sync::atomic::{
    AtomicBool, AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release, Ordering::SeqCst,
};

/// A thing to be done, by pool slot. Each slot of each pool is in the queue at most once per kind, so that a queue with
/// a place for each never overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Ends a process.
    Process(u32),
    /// Frees the slot of an ended process.
    Slot(u32),
    /// Frees a thread's slot.
    Thread(u32),
    /// Fails the callers of a dead endpoint, and frees it when no handle is left.
    Endpoint(u32),
    /// Wakes the waiters of a notification without handles, and frees it.
    Notification(u32),
    /// Frees a memory object.
    Memory(u32),
}

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// That was the last one.
    Done,
    /// There is more to do.
    Again,
    /// Something else must happen first.
    Wait,
}

struct Ring {
    places: &'static mut [Option<Item>],
    first: usize,
    length: usize,
    /// Steps since the last progress.
    waited: usize,
    /// Events there were before the first of them.
    seen: u32,
}

impl Glance for Ring {
    /// Items.
    fn glance(&self) -> u32 {
        self.length as u32
    }
}

/// The queue of work.
pub struct WorkQueue {
    ring: Shown<Ring, { rank::WORK }>,
    /// Whether a step may make progress.
    runnable: AtomicBool,
    /// Counts what items may wait for, so that an event during a step is not lost with it.
    events: AtomicU32,
    /// Items in the queue, or in a step just now.
    unfinished: AtomicU32,
}

impl WorkQueue {
    /// An empty queue. It needs a place for each slot of the pools, and one more for each process.
    #[must_use]
    pub const fn new(places: &'static mut [Option<Item>]) -> Self {
        Self {
            ring: Shown::new(Ring {
                places,
                first: 0,
                length: 0,
                waited: 0,
                seen: 0,
            }),
            runnable: AtomicBool::new(false),
            events: AtomicU32::new(0),
            unfinished: AtomicU32::new(0),
        }
    }

    /// Appends an item.
    ///
    /// # Panics
    /// If the queue is full: an item was queued twice.
    pub fn push(&self, cpu: &Cpu, item: Item) {
        self.unfinished.fetch_add(1, Relaxed);
        let mut ring = self.ring.lock(cpu);
        assert!(
            ring.length < ring.places.len(),
            "the work queue has a place for each item"
        );
        let place = (ring.first + ring.length) % ring.places.len();
        ring.places[place] = Some(item);
        ring.length += 1;
        ring.waited = 0;
        self.runnable.store(true, Release);
    }

    /// Appends an item unless `queued` says that it is there; its step must call [`taken`](Self::taken).
    pub fn push_once(&self, cpu: &Cpu, item: Item, queued: &AtomicBool) {
        if !queued.swap(true, AcqRel) {
            self.push(cpu, item);
        }
    }

    /// The item's step begins: what happens from here on queues it again.
    pub fn taken(&self, queued: &AtomicBool) {
        queued.store(false, Release);
    }

    /// Whether anything is left to be done. What is done by the time of this load, and what it freed, is seen after it.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.unfinished.load(Acquire) != 0
    }

    /// An item is done, and what it freed is free.
    fn finished(&self) {
        self.unfinished.fetch_sub(1, Release);
    }

    /// Whether a step may make progress. One load.
    #[must_use]
    pub fn is_runnable(&self) -> bool {
        self.runnable.load(Acquire)
    }

    /// Time has passed: items that wait are tried again. Without items this waits for nobody.
    pub fn tick(&self) {
        if self.ring.glance() != 0 {
            self.retry();
        }
    }

    /// Something has happened that items may wait for.
    pub fn retry(&self) {
        self.events.fetch_add(1, SeqCst);
        self.runnable.store(true, SeqCst);
    }

    /// The first item, and the events there were before its step.
    fn pop(&self, cpu: &Cpu) -> Option<(Item, u32)> {
        let mut ring = self.ring.lock(cpu);
        if ring.length == 0 {
            self.runnable.store(false, Relaxed);
            return None;
        }
        let first = ring.first;
        ring.first = (first + 1) % ring.places.len();
        ring.length -= 1;
        let item = ring.places[first].take()?;
        Some((item, self.events.load(SeqCst)))
    }

    fn put_back(&self, cpu: &Cpu, item: Item, progress: Progress, before: u32) {
        let mut ring = self.ring.lock(cpu);
        let place = (ring.first + ring.length) % ring.places.len();
        ring.places[place] = Some(item);
        ring.length += 1;
        if progress == Progress::Again {
            ring.waited = 0;
            self.runnable.store(true, Release);
            return;
        }
        if ring.waited == 0 {
            ring.seen = before;
        }
        ring.waited += 1;
        if ring.waited >= ring.length {
            // All of them wait, unless something has happened since the first of them was tried.
            ring.waited = 0;
            self.runnable.store(false, SeqCst);
            if self.events.load(SeqCst) != ring.seen {
                self.runnable.store(true, SeqCst);
            }
        }
    }
}

impl<H: Hardware> Kernel<H> {
    /// Does one step of the first item.
    pub(crate) fn work_step(&self, cpu: &CpuState) {
        let Some((item, before)) = self.work.pop(&cpu.token) else {
            return;
        };
        let progress = match item {
            Item::Process(slot) => self.end_process_step(cpu, slot),
            Item::Slot(slot) => self.free_slot_step(cpu, slot),
            Item::Thread(slot) => self.free_thread_step(cpu, slot),
            Item::Endpoint(slot) => self.free_endpoint_step(cpu, slot),
            Item::Notification(slot) => self.free_notification_step(cpu, slot),
            Item::Memory(slot) => self.free_memory_step(cpu, slot),
        };
        match progress {
            Progress::Done => self.work.finished(),
            _ => self.work.put_back(&cpu.token, item, progress, before),
        }
    }

    /// Makes all CPUs pass their quiescent points soon, so that what waits for this epoch can go on.
    pub(crate) fn hurry(&self, cpu: &CpuState, epoch: Epoch) {
        self.grace.advance(epoch);
        self.kick_all(cpu, self.grace.stragglers(u64::MAX, epoch));
    }

    /// Kicks each CPU of a mask but this one, which is in the kernel already.
    pub(crate) fn kick_all(&self, cpu: &CpuState, mask: u64) {
        for there in self.cpus {
            let id = there.token.id();
            if mask & id.bit() != 0 && id != cpu.token.id() {
                self.hw.kick(id);
            }
        }
    }
}
