//! Ending threads and processes.

use crate::account::Account;
use crate::base::pool::Ref;
use crate::handles::{CHUNK_ENTRIES, CHUNKS_MAX, Grant};
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::mem::paging::Tables;
use crate::object::process::{Counted, Teardown};
use crate::object::thread::{State, ThreadId};
use crate::object::{Object, Process, Thread};
use crate::trace::Event;
use crate::work::{Item, Progress};
use core::sync::atomic::{
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use ipc::abi::Error;
use ipc::abi::exit::{CrashReport, ExitReason};
use ipc::abi::trace::TraceKind;

/// Threads ended, handles closed and mappings let go in one step.
const STEP: usize = 16;
/// Table entries looked at in one step.
const TABLE_STEP: u32 = 512;
/// Frames reclaimed in one step.
pub(super) const RECLAIM_STEP: u32 = 64;

impl<H: Hardware> Kernel<H> {
    /// Announces a process's end, once: the first reason stays. From here on no call reaches it and its threads end as their CPUs see it.
    pub(crate) fn begin_death(
        &self,
        cpu: &CpuState,
        slot: u32,
        reason: ExitReason,
        code: u64,
        crash: Option<CrashReport>,
    ) {
        let process = self.process(slot);
        // Who has its quota from nobody is the first program: the others have all they have from it.
        if process.parent.load(Relaxed) == u32::MAX {
            self.hw.init_ended(reason, code, crash.as_ref());
        }
        {
            let mut life = process.life.lock(&cpu.token);
            if life.teardown != Teardown::Alive {
                return;
            }
            life.reason = reason;
            life.code = code;
            if let Some(crash) = crash {
                life.crash = crash;
            }
            life.teardown = Teardown::Threads;
            process.dead.store(true, SeqCst);
        }
        let pid = process.pid.load(Relaxed);
        self.profiler.process_ended(&cpu.token, pid, self.hw.tsc());
        if self.is_tracing() {
            self.record(
                cpu,
                Event::new(TraceKind::ProcessEnd)
                    .of(pid, 0)
                    .detail(reason as u32)
                    .words(code, 0),
            );
        }
        // A CPU that is just coming to run it says so before it looks whether it has ended.
        self.kick_all(cpu, process.active.load(SeqCst));
        self.work.push(&cpu.token, Item::Process(slot));
    }

    /// Ends a process that nothing can reach any more: no handle names it, and none of its threads has been started or can be.
    pub(crate) fn end_unreachable(&self, cpu: &CpuState, slot: u32) {
        let process = self.process(slot);
        let reachable = {
            // The last handle to it and the last to its thread may go at once: who comes second here sees that both are gone.
            let life = process.life.lock(&cpu.token);
            let mut threads = core::iter::successors(ThreadId::from_word(life.threads), |&id| {
                ThreadId::from_word(self.thread(id).sibling.load(Relaxed))
            });
            let reaches = |thread: &Thread| {
                thread.status().state() != State::Held || thread.refs.load(Relaxed) > 1
            };
            life.teardown != Teardown::Alive
                || process.names.load(Relaxed) != 0
                || threads.any(|id| reaches(self.thread(id)))
        };
        if !reachable {
            self.begin_death(cpu, slot, ExitReason::Killed, 0, None);
        }
    }

    /// Ends a thread that the caller owns and that is in no queue; with its last thread a process ends, or with the last that anybody
    /// could reach it by.
    pub(crate) fn end_thread(&self, cpu: &CpuState, id: ThreadId) {
        let slot = self.thread(id).process.load(Relaxed);
        let none_left = self.retire_thread(cpu, id);
        if none_left {
            self.begin_death(cpu, slot, ExitReason::Exited, 0, None);
        } else {
            self.end_unreachable(cpu, slot);
        }
        self.work.retry();
    }

    /// Takes a thread that the caller owns out of its process, and says whether that was the last. The process is there at least until
    /// this CPU leaves the kernel, since the thread's slot is.
    fn retire_thread(&self, cpu: &CpuState, id: ThreadId) -> bool {
        let thread = self.thread(id);
        let slot = thread.process.load(Relaxed);
        let process = self.process(slot);
        self.disarm(cpu, id);
        if let Some(client) = thread.served() {
            thread.set_serving(None);
            self.fail_call(cpu, client, Error::PeerDied);
        }
        thread.server.store(ThreadId::NONE, Relaxed);
        self.leave_endpoint(cpu, id);
        if let Some(memory) = Ref::unpack(thread.filling.swap(0, Relaxed)) {
            self.release_memory(cpu, memory);
        }
        if let Some(memory) = Ref::unpack(thread.buffer_object.swap(0, Relaxed)) {
            self.release_memory(cpu, memory);
        }
        thread.awaited_epoch.store(0, Relaxed);
        thread.publish(State::Dead);
        if self.is_tracing() {
            self.record(cpu, self.event(TraceKind::ThreadEnd, id));
        }
        // The partner of the fence in `bind`: what is bound to it later is undone there.
        fence(SeqCst);
        if let Some(notification) = thread.bound() {
            self.unbind(cpu, notification, Some(id));
        }
        let none_left = {
            let mut life = process.life.lock(&cpu.token);
            self.forget_thread(&mut life.threads, id);
            // Its time is counted with the list, or with those that have ended: under the lock, never with both.
            let ran = thread.cpu_ticks.load(Relaxed);
            process.cpu_ticks.fetch_add(ran, Relaxed);
            life.live -= 1;
            life.live == 0
        };
        if let Some(reference) = self.pools.threads.reference(id.0) {
            self.release(
                cpu,
                &Grant {
                    object: Object::Thread(reference),
                    rights: ipc::abi::Rights::empty(),
                },
            );
        }
        none_left
    }

    /// Ends a held thread that nobody has heard of. That a process has no other is no reason to end it.
    pub(crate) fn unmake_thread(&self, cpu: &CpuState, id: ThreadId) {
        self.retire_thread(cpu, id);
        self.work.retry();
    }

    /// Takes a thread out of its process's list, which is no longer than a process may have threads.
    fn forget_thread(&self, first: &mut u32, id: ThreadId) {
        let behind = self.thread(id).sibling.load(Relaxed);
        if *first == id.0 {
            *first = behind;
            return;
        }
        let mut at = ThreadId::from_word(*first);
        while let Some(before) = at {
            let link = &self.thread(before).sibling;
            if link.load(Relaxed) == id.0 {
                link.store(behind, Relaxed);
                return;
            }
            at = ThreadId::from_word(link.load(Relaxed));
        }
    }

    /// One step of a process's end.
    pub(crate) fn end_process_step(&self, cpu: &CpuState, slot: u32) -> Progress {
        let process = self.process(slot);
        let phase = process.life.lock(&cpu.token).teardown;
        let next = match phase {
            Teardown::Threads => self.end_threads(cpu, process),
            Teardown::Handles(cursor) => self.close_handles(cpu, process, cursor),
            Teardown::Mappings => self.drop_mappings(cpu, process),
            Teardown::Tables => self.free_tables(cpu, slot, process),
            Teardown::Grace(epoch) => {
                let freed = self.frames.reclaim(&cpu.token, &self.grace, RECLAIM_STEP);
                if self.frames.reclaimed(&cpu.token, epoch) {
                    Some(Teardown::Done)
                } else if freed == RECLAIM_STEP {
                    Some(phase)
                } else {
                    self.hurry(cpu, epoch);
                    None
                }
            }
            Teardown::Alive | Teardown::Done => return Progress::Done,
        };
        let Some(next) = next else {
            return Progress::Wait;
        };
        if next == Teardown::Done {
            // Before anybody hears of the end, who may want it for the next process.
            self.return_quota(process);
        }
        let watcher = {
            let mut life = process.life.lock(&cpu.token);
            life.teardown = next;
            if next == Teardown::Done {
                life.watcher.take()
            } else {
                None
            }
        };
        if next != Teardown::Done {
            return Progress::Again;
        }
        if let Some((notification, bits)) = watcher {
            self.set_bits(cpu, notification, bits);
            self.release(cpu, &Grant::keeping(Object::Notification(notification)));
        }
        self.release_process(&cpu.token, slot);
        Progress::Done
    }

    fn end_threads(&self, cpu: &CpuState, process: &Process) -> Option<Teardown> {
        let mut found = heapless::Vec::<ThreadId, STEP>::new();
        {
            let life = process.life.lock(&cpu.token);
            let mut at = ThreadId::from_word(life.threads);
            while let Some(id) = at {
                if found.push(id).is_err() {
                    break;
                }
                at = ThreadId::from_word(self.thread(id).sibling.load(Relaxed));
            }
        }
        if found.is_empty() {
            process.handles.lock(&cpu.token).close();
            return Some(Teardown::Handles(0));
        }
        let mut ended = false;
        for id in found {
            ended |= self.end_if_possible(cpu, id);
        }
        // Threads on other CPUs end there, at the next kernel exit.
        self.kick_all(cpu, process.active.load(Acquire));
        ended.then_some(Teardown::Threads)
    }

    /// Ends a thread of a dead process unless it runs, or another CPU has just claimed it.
    fn end_if_possible(&self, cpu: &CpuState, id: ThreadId) -> bool {
        let thread = self.thread(id);
        let seen = thread.status();
        let owned = match seen.state() {
            State::Held => thread.claim_held(),
            State::Ready => self.unqueue(cpu, id),
            state if state.is_blocked() => {
                let claimed = thread.claim(seen);
                if claimed {
                    self.unlink(cpu, id, state);
                }
                claimed
            }
            _ => false,
        };
        if owned {
            self.end_thread(cpu, id);
        }
        owned
    }

    fn close_handles(
        &self,
        cpu: &CpuState,
        process: &Process,
        mut cursor: u32,
    ) -> Option<Teardown> {
        for _ in 0..STEP {
            let (grant, next) = process.handles.lock(&cpu.token).drain(
                &self.pools.chunks,
                cursor,
                CHUNK_ENTRIES as u32,
            );
            cursor = next;
            if let Some(grant) = grant {
                self.release(cpu, &grant);
            }
        }
        if (cursor as usize) < CHUNKS_MAX * CHUNK_ENTRIES {
            return Some(Teardown::Handles(cursor));
        }
        let chunks = process
            .handles
            .lock(&cpu.token)
            .release(&cpu.token, &self.pools.chunks);
        for _ in 0..chunks {
            process.uncount(Counted::Chunks);
        }
        Some(Teardown::Mappings)
    }

    fn drop_mappings(&self, cpu: &CpuState, process: &Process) -> Option<Teardown> {
        for _ in 0..STEP {
            let Some(memory) = process.space.lock(&cpu.token).pop() else {
                return Some(Teardown::Tables);
            };
            self.release_memory(cpu, memory);
        }
        Some(Teardown::Mappings)
    }

    /// Frees the page tables, once no CPU has them loaded, and waits for the objects that were let go.
    fn free_tables(&self, cpu: &CpuState, slot: u32, process: &Process) -> Option<Teardown> {
        let active = process.active.load(Acquire);
        if active & !cpu.token.id().bit() != 0 {
            self.kick_all(cpu, active);
            return None;
        }
        if active != 0 {
            // This CPU has left the process already, and only keeps its space until it loads another.
            self.unload(cpu);
        }
        if let Some(root) = process.root() {
            let mut progress = process.space.lock(&cpu.token).teardown.unwrap_or_default();
            let mut account = Account::new(self, cpu, slot);
            let done = Tables::at(root).teardown(self.hw, &mut progress, TABLE_STEP, &mut account);
            process.space.lock(&cpu.token).teardown = Some(progress);
            if done {
                process.root.store(0, Release);
                self.frames
                    .retire(&cpu.token, root, self.grace.retire_epoch());
                process.uncharge(1);
            }
            return Some(Teardown::Tables);
        }
        if process.freeing.load(Acquire) != 0 {
            return None;
        }
        Some(Teardown::Grace(self.grace.retire_epoch()))
    }
}
