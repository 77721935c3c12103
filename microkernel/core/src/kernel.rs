//! The kernel: all its state, and the ways in and out of it.
//!
//! Every entry runs on one CPU with interrupts off, to its end: one of [`syscall`](Kernel::syscall), `fault`, `interrupt`, `tick`,
//! `timer` and `kicked`, or [`entered`](Kernel::entered) alone, followed by [`leave`](Kernel::leave), which says what the CPU
//! does next. Nothing is kept on a stack between two entries.

use crate::base::addr::{Frame, Nanos};
use crate::base::cpu::{Cpu, CpuId};
use crate::base::lock::{Lock, Shown, rank};
use crate::base::pool::Ref;
use crate::hardware::Hardware;
use crate::interrupts::Lines;
use crate::log::Log;
use crate::mem::frames::Frames;
use crate::mem::grace::Grace;
use crate::object::queue::PriorityQueue;
use crate::object::{Memory, Notification, Pools, Process, Thread, ThreadId};
use crate::profile::{self, Driver};
use crate::sched::load::CpuLoad;
use crate::timers::TimerQueue;
use crate::trace;
use crate::work::WorkQueue;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// What one CPU needs for itself. Others reach it through its locks and atomics only.
pub struct CpuState {
    /// Proof of running on it.
    pub token: Cpu,
    /// Thread it runs, or [`ThreadId::NONE`]. Only this CPU writes it.
    pub current: AtomicU32,
    /// Pool slot of the process whose space it has loaded. Only this CPU writes it.
    pub loaded: AtomicU32,
    /// The current thread must give way at the next exit.
    pub resched: AtomicBool,
    /// Its time slice is over: it goes behind others of its priority.
    pub slice_over: AtomicBool,
    /// Priority of the current thread, for others to compare; 0 when idle. Only this CPU writes it: so it is less than the
    /// thread's own from when another CPU raises that to when this one looks, which costs a kick for nothing.
    pub priority: AtomicU8,
    /// Threads that are ready here.
    pub queue: Shown<PriorityQueue, { rank::RUN_QUEUE }>,
    /// Deadlines armed here.
    pub timers: Lock<TimerQueue, { rank::TIMERS }>,
    /// Counts of what it did.
    pub load: CpuLoad,
    /// What it did, event by event, while that was traced.
    pub trace: trace::Ring,
    /// What the profiling driver keeps for it.
    pub sampling: &'static profile::CpuState,
}

impl CpuState {
    /// A CPU that has not started.
    #[must_use]
    pub fn new(
        id: CpuId,
        timers: TimerQueue,
        trace: trace::Ring,
        sampling: &'static profile::CpuState,
    ) -> Self {
        Self {
            token: Cpu::new(id),
            current: AtomicU32::new(ThreadId::NONE),
            loaded: AtomicU32::new(u32::MAX),
            resched: AtomicBool::new(false),
            slice_over: AtomicBool::new(false),
            priority: AtomicU8::new(0),
            queue: Shown::new(PriorityQueue::new()),
            timers: Lock::new(timers),
            load: CpuLoad::default(),
            trace,
            sampling,
        }
    }
    /// The thread it runs.
    #[must_use]
    #[inline]
    pub fn current(&self) -> Option<ThreadId> {
        ThreadId::from_word(self.current.load(Relaxed))
    }
}

/// What is set once at boot.
pub struct Facts {
    /// The version line.
    pub version: &'static str,
    /// The boot command line.
    pub command_line: &'static [u8],
    /// TSC ticks in a second.
    pub tsc_hz: u64,
    /// Pages of RAM that the firmware reported.
    pub total_pages: u64,
    /// Pages that the kernel keeps.
    pub kernel_pages: u64,
    /// Pages of the boot module.
    pub bootfs_pages: u64,
    /// Its first frame.
    pub bootfs: Frame,
    /// Frame of the information page.
    pub info_page: Frame,
    /// The driver's rings, in a row of frames.
    pub rings: Frame,
    /// Bytes of one ring; a whole number of pages.
    pub ring_bytes: u64,
}

/// All of it.
pub struct Kernel<H: Hardware + 'static> {
    /// The machine.
    pub hw: &'static H,
    /// Facts from boot.
    pub facts: Facts,
    /// The objects.
    pub pools: Pools,
    /// The CPUs that run.
    pub cpus: &'static [CpuState],
    /// Free memory.
    pub frames: Frames,
    /// Grace periods.
    pub grace: Grace,
    /// The log.
    pub log: &'static Log,
    /// The profiling driver.
    pub profiler: Driver,
    /// The profiler's rings as a memory object, once it was asked for.
    pub rings_object: AtomicU64,
    /// Whom the profiling driver wakes: a packed notification and bits.
    pub profiler_watcher: Lock<Option<(Ref<Notification>, u64)>, { rank::WATCHER }>,
    /// Interrupt lines and who takes them.
    pub lines: Lock<Lines, { rank::INTERRUPTS }>,
    /// Work that is done in steps.
    pub work: WorkQueue,
    /// Threads that wait for translations to be flushed.
    pub shootdown: Shown<PriorityQueue, { rank::SHOOTDOWN }>,
    /// Bit per idle CPU.
    pub idle: AtomicU64,
    /// Whether events are traced.
    pub tracing: AtomicBool,
    /// Interrupts of each line.
    pub line_counts: &'static [AtomicU64],
    pub(crate) next_pid: AtomicU32,
    pub(crate) next_tid: AtomicU32,
}

/// What a new kernel is made of.
pub struct Parts<H: Hardware + 'static> {
    /// See [`Kernel::hw`].
    pub hw: &'static H,
    /// See [`Kernel::facts`].
    pub facts: Facts,
    /// See [`Kernel::pools`].
    pub pools: Pools,
    /// See [`Kernel::cpus`].
    pub cpus: &'static [CpuState],
    /// See [`Kernel::frames`].
    pub frames: Frames,
    /// See [`Kernel::log`].
    pub log: &'static Log,
    /// See [`Kernel::profiler`].
    pub profiler: Driver,
    /// See [`Kernel::lines`].
    pub lines: Lines,
    /// See [`Kernel::line_counts`].
    pub line_counts: &'static [AtomicU64],
    /// See [`Kernel::work`].
    pub work: WorkQueue,
}

impl<H: Hardware> Kernel<H> {
    /// A kernel in which nothing runs yet.
    #[must_use]
    pub const fn new(parts: Parts<H>) -> Self {
        let Parts {
            hw,
            facts,
            pools,
            cpus,
            frames,
            log,
            profiler,
            lines,
            line_counts,
            work,
        } = parts;
        Self {
            hw,
            facts,
            pools,
            cpus,
            frames,
            grace: Grace::new(),
            log,
            profiler,
            rings_object: AtomicU64::new(0),
            profiler_watcher: Lock::new(None),
            lines: Lock::new(lines),
            work,
            shootdown: Shown::new(PriorityQueue::new()),
            idle: AtomicU64::new(0),
            tracing: AtomicBool::new(false),
            line_counts,
            next_pid: AtomicU32::new(1),
            next_tid: AtomicU32::new(1),
        }
    }

    /// The thread in a slot.
    ///
    /// # Panics
    /// On a number that no slot has: thread numbers come from the pool.
    #[must_use]
    pub fn thread(&self, id: ThreadId) -> &'static Thread {
        self.pools
            .threads
            .at(id.0)
            .expect("a thread number comes from the pool")
    }

    /// The process in a slot.
    ///
    /// # Panics
    /// On a number that no slot has: process slots come from the pool.
    #[must_use]
    pub fn process(&self, slot: u32) -> &'static Process {
        self.pools
            .processes
            .at(slot)
            .expect("a process slot comes from the pool")
    }

    /// The process of a thread.
    #[must_use]
    pub fn process_of(&self, thread: &Thread) -> &'static Process {
        self.process(thread.process.load(Relaxed))
    }

    /// A memory object that the caller holds a count of.
    ///
    /// # Panics
    /// If it was freed all the same.
    #[must_use]
    pub fn memory(&self, reference: Ref<Memory>) -> &'static Memory {
        self.pools
            .memory
            .get(reference)
            .expect("a counted memory object is not freed")
    }

    /// The state of a CPU that runs.
    ///
    /// # Panics
    /// On a CPU that does not run: CPU numbers are checked where they come in.
    #[must_use]
    pub fn cpu(&self, id: CpuId) -> &'static CpuState {
        self.cpus
            .get(id.index())
            .expect("CPU numbers are checked where they come in")
    }

    /// Item number of a notification's timer in the timer queues; threads have their own numbers.
    pub(crate) fn timer_item(&self, notification: Ref<Notification>) -> u32 {
        self.pools.threads.len() + notification.index()
    }

    /// Now.
    pub(crate) fn now(&self) -> Nanos {
        self.hw.now()
    }
}
