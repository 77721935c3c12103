//! Making processes and threads.

use crate::base::addr::{Frame, UserAddr};
use crate::base::pool::Ref;
use crate::calls::Stop;
use crate::handles::HandleTable;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::mem::page::{Access, Kind, Page};
use crate::mem::paging::Tables;
use crate::mem::supply::Supply;
use crate::object::process::{Counted, NO_CRASH, Teardown};
use crate::object::thread::{ANY_CPU, State};
use crate::object::{Memory, Notification, Process, Thread, ThreadId};
use crate::space::Space;
use crate::trace::Event;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, Release};
use ipc::abi::Error;
use ipc::abi::exit::ExitReason;
use ipc::abi::layout::INFO_PAGE;
use ipc::abi::trace::TraceKind;

/// Pages a process needs for itself: its root table, and three tables and their like for the information page.
pub const PROCESS_PAGES_MIN: u64 = 8;

/// What a new thread begins with.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// RIP.
    pub entry: u64,
    /// RSP.
    pub stack: u64,
    /// RDI.
    pub argument: u64,
    /// FS base.
    pub base: u64,
}

/// The next of numbers that are never used twice. `LimitReached` if all have been.
fn next(number: &AtomicU32) -> Result<u32, Error> {
    number
        .fetch_update(Relaxed, Relaxed, |number| number.checked_add(1))
        .map_err(|_| Error::LimitReached)
}

/// Tables that every process begins with: the root, and those on the way to the information page.
const FIRST_TABLES: usize = 4;

/// Frames that were taken before they are needed.
struct Reserve(heapless::Vec<Frame, FIRST_TABLES>);

impl Supply for Reserve {
    fn take(&mut self) -> Result<Frame, Error> {
        self.0.pop().ok_or(Error::OutOfMemory)
    }
    fn give(&mut self, frame: Frame) {
        // There is room for every frame that came from here.
        let _ = self.0.push(frame);
    }
}

impl<H: Hardware> Kernel<H> {
    /// Makes a process without threads. Its quota is taken from its parent's. It is made whole or not at all.
    ///
    /// # Errors
    /// `QuotaExceeded` when the parent cannot give that much, `BadArgument` when it is too little for any process, `LimitReached` when
    /// process ids have run out, `OutOfMemory`.
    pub(crate) fn create_process(
        &self,
        cpu: &CpuState,
        parent: Option<u32>,
        quota: u64,
        image: u32,
        name: [u64; 2],
    ) -> Result<Ref<Process>, Stop> {
        if quota < PROCESS_PAGES_MIN {
            return Err(Error::BadArgument.into());
        }
        if let Some(parent) = parent {
            self.charge(self.process(parent), quota)?;
        }
        let mut frames = Reserve(heapless::Vec::new());
        let made = self.reserve_process(cpu, &mut frames);
        let (reference, process, pid) = made.inspect_err(|_| {
            // Nobody has seen them.
            for &frame in &frames.0 {
                self.frames.free(&cpu.token, frame);
            }
            if let Some(parent) = parent {
                self.process(parent).uncharge(quota);
            }
        })?;
        let root = self.first_tables(frames);
        process.image.store(image, Relaxed);
        for (word, value) in process.name.iter().zip(name) {
            word.store(value, Relaxed);
        }
        process.active.store(0, Relaxed);
        process.quota.store(quota, Relaxed);
        process.pages.store(FIRST_TABLES as u64, Relaxed);
        process.parent.store(parent.unwrap_or(u32::MAX), Relaxed);
        if let Some(parent) = parent {
            self.process(parent).refs.fetch_add(1, Relaxed);
        }
        process.cpu_ticks.store(0, Relaxed);
        process.gone_ticks.store(0, Relaxed);
        process.freeing.store(0, Relaxed);
        for count in &process.objects {
            count.store(0, Relaxed);
        }
        *process.handles.lock(&cpu.token) = HandleTable::new();
        *process.space.lock(&cpu.token) = Space::new();
        {
            let mut life = process.life.lock(&cpu.token);
            life.threads = ThreadId::NONE;
            life.live = 0;
            life.reason = ExitReason::Running;
            life.code = 0;
            life.crash = NO_CRASH;
            life.watcher = None;
            life.teardown = Teardown::Alive;
        }
        process.refs.store(1, Relaxed);
        process.names.store(0, Relaxed);
        process.root.store(root.0, Release);
        process.dead.store(false, Release);
        // Whoever looks through the pool has everything with it.
        process.pid.store(pid, Release);
        if self.is_tracing() {
            let parent = parent.map_or(0, |parent| self.process(parent).pid.load(Relaxed));
            self.record(
                cpu,
                Event::new(TraceKind::ProcessStart)
                    .of(pid, 0)
                    .words(parent.into(), 0),
            );
        }
        Ok(reference)
    }

    /// Takes what a process needs that may have run out: frames for its tables, a slot and an id.
    fn reserve_process(
        &self,
        cpu: &CpuState,
        frames: &mut Reserve,
    ) -> Result<(Ref<Process>, &'static Process, u32), Stop> {
        for _ in 0..FIRST_TABLES {
            frames.give(self.take_frame(cpu).ok_or(Stop::Restart)?);
        }
        let (reference, process) = self.take_slot(cpu, &self.pools.processes)?;
        let pid = next(&self.next_pid)
            .inspect_err(|_| self.pools.processes.give(&cpu.token, reference))?;
        Ok((reference, process, pid))
    }

    /// The root of a space with the information page and nothing else.
    fn first_tables(&self, mut frames: Reserve) -> Frame {
        let root = frames.take().and_then(|root| {
            let tables = Tables::new(self.hw, root, |index| self.hw.kernel_entry(index));
            let (page, frame) = (Page::new(UserAddr(INFO_PAGE))?, self.facts.info_page);
            tables.map(self.hw, page, frame, Access::Read, Kind::Ram, &mut frames)?;
            Ok(root)
        });
        root.expect("the information page is one that can be mapped, with a table of each level")
    }

    /// Makes a held thread in a process. `buffer` is counted by the caller, for the thread.
    ///
    /// # Errors
    /// `PeerDied` if the process has ended, `LimitReached` or `OutOfMemory` if there is no thread to be had.
    pub(crate) fn create_thread(
        &self,
        cpu: &CpuState,
        slot: u32,
        start: Start,
        priority: u8,
        buffer: (Ref<Memory>, u64),
    ) -> Result<Ref<Thread>, Stop> {
        let process = self.process(slot);
        self.count(process, Counted::Threads)?;
        let (reference, thread) = self
            .take_slot(cpu, &self.pools.threads)
            .inspect_err(|_| self.uncount(cpu, slot, Counted::Threads))?;
        let tid = next(&self.next_tid).inspect_err(|_| {
            self.pools.threads.give(&cpu.token, reference);
            self.uncount(cpu, slot, Counted::Threads);
        })?;
        let id = ThreadId(reference.index());
        thread.regs.start(start.entry, start.stack, start.argument);
        thread.fs_base.store(start.base, Relaxed);
        thread.stack.store(start.stack, Relaxed);
        thread.process.store(slot, Relaxed);
        let pid = process.pid.load(Relaxed);
        thread.image.store(process.image.load(Relaxed), Relaxed);
        thread
            .ids
            .store(u64::from(pid) | u64::from(tid) << 32, Relaxed);
        thread.base_priority.store(priority, Relaxed);
        thread.priority.store(priority, Relaxed);
        thread.pinned.store(ANY_CPU, Relaxed);
        thread.last_cpu.store(cpu.token.id().0, Relaxed);
        thread.linked.store(false, Relaxed);
        thread.blocked_on.store(0, Relaxed);
        thread.receives_from.store(0, Relaxed);
        thread.set_serving(None);
        thread.server.store(ThreadId::NONE, Relaxed);
        thread.bound.store(0, Relaxed);
        thread.timer_cpu.store(ANY_CPU, Relaxed);
        thread.filling.store(0, Relaxed);
        thread.cursor.store(0, Relaxed);
        thread.cpu_ticks.store(0, Relaxed);
        thread.buffer_object.store(buffer.0.pack(), Relaxed);
        thread.buffer.store(buffer.1, Relaxed);
        // One for the process's list, one for the handle that the caller makes.
        thread.refs.store(2, Relaxed);
        let mut life = process.life.lock(&cpu.token);
        if process.is_dead() {
            drop(life);
            self.pools.threads.give(&cpu.token, reference);
            self.uncount(cpu, slot, Counted::Threads);
            return Err(Error::PeerDied.into());
        }
        thread.sibling.store(life.threads, Relaxed);
        life.threads = id.0;
        life.live += 1;
        thread.publish(State::Held);
        Ok(reference)
    }

    /// Who is told when a process has ended. The notification is counted by the caller, for this.
    pub(crate) fn watch(
        &self,
        cpu: &CpuState,
        process: &Process,
        watcher: (Ref<Notification>, u64),
    ) {
        process.life.lock(&cpu.token).watcher = Some(watcher);
    }
}
