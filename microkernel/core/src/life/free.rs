//! Freeing objects that nobody names any more.

use crate::account::Account;
use crate::base::addr::Frame;
use crate::base::pool::Ref;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::mem::grace::Epoch;
use crate::object::memory::Backing;
use crate::object::process::{Counted, Teardown};
use crate::object::{Memory, Process};
use crate::work::Progress;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use ipc::abi::Error;

/// Threads woken, badges or frames freed in one step.
const STEP: usize = 32;

impl<H: Hardware> Kernel<H> {
    /// Gives the parent of a process that has ended back what nobody uses of its quota. Nothing is charged to it any more: who saw it
    /// alive has left the kernel since, or its page tables would still wait.
    pub(crate) fn return_quota(&self, process: &Process) {
        let used = process.pages.load(Relaxed);
        let quota = process.quota.swap(used, Relaxed);
        let parent = process.parent.load(Relaxed);
        if parent != u32::MAX {
            self.process(parent).uncharge(quota - used);
        }
    }

    /// Frees the slot of an ended process, once no sample can look at it, and gives back the rest of its quota.
    pub(crate) fn free_slot_step(&self, cpu: &CpuState, slot: u32) -> Progress {
        let process = self.process(slot);
        let mut life = process.life.lock(&cpu.token);
        let epoch = match life.teardown {
            Teardown::Grace(epoch) => epoch,
            _ => {
                let epoch = self.grace.retire_epoch();
                life.teardown = Teardown::Grace(epoch);
                epoch
            }
        };
        drop(life);
        if !self.grace.passed(epoch) {
            self.hurry(cpu, epoch);
            return Progress::Wait;
        }
        self.return_quota(process);
        let parent = process.parent.load(Relaxed);
        if let Some(parent) = self.pools.processes.at(parent) {
            let ran = process.cpu_ticks.load(Relaxed) + process.gone_ticks.load(Relaxed);
            parent.gone_ticks.fetch_add(ran, Relaxed);
        }
        process.pid.store(0, Relaxed);
        if let Some(reference) = self.pools.processes.reference(slot) {
            self.pools.processes.give(&cpu.token, reference);
        }
        if parent != u32::MAX {
            self.release_process(&cpu.token, parent);
        }
        Progress::Done
    }

    /// Frees a thread's slot, once no sample can look at it. Until here it is on its process's account: one that has ended and is still
    /// named takes a slot like any other.
    pub(crate) fn free_thread_step(&self, cpu: &CpuState, slot: u32) -> Progress {
        let Some((reference, thread)) = self.pools.threads.occupant(slot) else {
            return Progress::Done;
        };
        let epoch = match thread.awaited_epoch.load(Relaxed) {
            0 => {
                let epoch = self.grace.retire_epoch();
                thread.awaited_epoch.store(epoch.raw(), Relaxed);
                epoch
            }
            raw => Epoch::from_raw(raw),
        };
        if !self.grace.passed(epoch) {
            self.hurry(cpu, epoch);
            return Progress::Wait;
        }
        thread.awaited_epoch.store(0, Relaxed);
        let process = thread.process.load(Relaxed);
        self.pools.threads.give(&cpu.token, reference);
        self.end_freeing(cpu, process, Counted::Threads);
        Progress::Done
    }

    /// Fails who waits at a dead endpoint, and frees it when no handle is left.
    pub(crate) fn free_endpoint_step(&self, cpu: &CpuState, slot: u32) -> Progress {
        let Some((reference, endpoint)) = self.pools.endpoints.occupant(slot) else {
            return Progress::Done;
        };
        self.work.taken(&endpoint.in_work);
        for _ in 0..STEP {
            let mut queues = endpoint.queues.lock(&cpu.token);
            let id = if let Some(id) = queues.callers.pop(&self.pools.threads) {
                id
            } else if let Some(id) = queues.receivers.pop(&self.pools.threads) {
                id
            } else if let Some(reference) = queues.closed {
                let next = self
                    .pools
                    .badges
                    .get(reference)
                    .and_then(|badge| Ref::unpack(badge.next.load(Relaxed)));
                queues.closed = next;
                drop(queues);
                self.free_badge(cpu, reference);
                continue;
            } else {
                if queues.unnamed && !endpoint.in_work.load(Acquire) {
                    queues.dead = false;
                    queues.unnamed = false;
                    queues.servers.clear();
                    let owner = endpoint.owner.load(Relaxed);
                    // Under the endpoint's lock: who looked it up before looks again under that lock.
                    self.pools.endpoints.give(&cpu.token, reference);
                    drop(queues);
                    self.end_freeing(cpu, owner, Counted::Endpoints);
                }
                return Progress::Done;
            };
            // Claimed under the lock: once it is let go, the thread may wait somewhere else.
            let thread = self.thread(id);
            let claimed = thread.claim(thread.status());
            drop(queues);
            if claimed {
                self.finish(cpu, id, Err(Error::PeerDied));
            }
        }
        if endpoint.in_work.swap(true, Relaxed) {
            Progress::Done
        } else {
            Progress::Again
        }
    }

    /// Wakes who waits on a notification that no handle names any more, and frees it.
    pub(crate) fn free_notification_step(&self, cpu: &CpuState, slot: u32) -> Progress {
        let Some((reference, notification)) = self.pools.notifications.occupant(slot) else {
            return Progress::Done;
        };
        self.unbind(cpu, reference, None);
        for _ in 0..STEP {
            let mut bits = notification.bits.lock(&cpu.token);
            let Some(id) = bits.waiters.pop(&self.pools.threads) else {
                self.cancel_timer(cpu, reference, &mut bits);
                self.loosen(reference, &mut bits);
                bits.pending = 0;
                let owner = notification.owner.load(Relaxed);
                self.pools.notifications.give(&cpu.token, reference);
                drop(bits);
                self.end_freeing(cpu, owner, Counted::Notifications);
                return Progress::Done;
            };
            // Claimed under the lock, as above.
            let thread = self.thread(id);
            let claimed = thread.claim(thread.status());
            drop(bits);
            if claimed {
                self.finish(cpu, id, Err(Error::BadHandle));
            }
        }
        Progress::Again
    }

    /// Frees some pages of a memory object, and the object with the last.
    pub(crate) fn free_memory_step(&self, cpu: &CpuState, slot: u32) -> Progress {
        let Some((reference, memory)) = self.pools.memory.occupant(slot) else {
            return Progress::Done;
        };
        let payer = memory.payer.load(Relaxed);
        let mut account = Account::new(self, cpu, payer);
        let mut pages = memory.pages.lock(&cpu.token);
        let mut whole = None;
        let pages = &mut *pages;
        for _ in 0..STEP {
            let frame = match &mut pages.backing {
                Backing::Paged(list) => list.pop(self.hw, &mut account),
                Backing::Contiguous(first) if pages.ready > 0 => {
                    Some(Frame(first.0 + pages.ready as u32 - 1))
                }
                Backing::Borrowed(_, whole_object) => {
                    whole = *whole_object;
                    None
                }
                Backing::Contiguous(_) | Backing::Device(_) => None,
            };
            let Some(frame) = frame else {
                pages.ready = 0;
                break;
            };
            pages.ready = pages.ready.saturating_sub(1);
            account.give_page(frame);
        }
        let left = match &pages.backing {
            Backing::Paged(list) => !list.is_empty(),
            Backing::Contiguous(_) => pages.ready > 0,
            Backing::Borrowed(..) | Backing::Device(_) => false,
        };
        if left {
            return Progress::Again;
        }
        pages.count = 0;
        self.finish_memory(cpu, reference, payer, whole);
        Progress::Done
    }

    fn finish_memory(
        &self,
        cpu: &CpuState,
        reference: Ref<Memory>,
        payer: u32,
        whole: Option<Ref<Memory>>,
    ) {
        self.pools.memory.give(&cpu.token, reference);
        if let Some(whole) = whole {
            self.release_memory(cpu, whole);
        }
        self.end_freeing(cpu, payer, Counted::Memory);
    }
}
