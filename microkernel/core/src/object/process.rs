//! Processes: an address space, a handle table, threads, and an account of what they use.

use super::notification::Notification;
use super::thread::ThreadId;
use crate::base::addr::Frame;
use crate::base::lock::{Lock, rank};
use crate::base::pool::Ref;
use crate::handles::HandleTable;
use crate::mem::grace::Epoch;
use crate::space::Space;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use ipc::abi::exit::{CrashReport, ExitReason};
use ipc::abi::layout::NAME_MAX;

/// How far the teardown of a dead process has come. Each phase is done in bounded steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Teardown {
    /// It lives.
    Alive,
    /// Its threads are being ended.
    Threads,
    /// Its handles are being closed.
    Handles(u32),
    /// Its mappings are being let go.
    Mappings,
    /// Its page tables are being freed.
    Tables,
    /// Its last frames wait for their grace period.
    Grace(Epoch),
    /// All that is left is its slot, for who still asks how it ended.
    Done,
}

/// What a process's thread lock guards.
#[derive(Debug)]
pub struct Life {
    /// First of its threads, linked by `sibling`.
    pub threads: u32,
    /// Threads that have not ended.
    pub live: u32,
    /// Why it ended.
    pub reason: ExitReason,
    /// With which code.
    pub code: u64,
    /// What a fault left.
    pub crash: CrashReport,
    /// Notification and bits that tell its end.
    pub watcher: Option<(Ref<Notification>, u64)>,
    /// How far its teardown has come.
    pub teardown: Teardown,
}

/// Kinds of objects that are counted by process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
#[expect(missing_docs, reason = "named as the pools are")]
pub enum Counted {
    Threads,
    Endpoints,
    Notifications,
    Memory,
    Chunks,
    Badges,
}

/// Kinds in [`Counted`].
pub const COUNTED: usize = 6;

/// A process.
#[derive(Debug)]
pub struct Process {
    /// Process id, never reused. Written last at creation; 0 in a slot that is free, or not whole yet.
    pub pid: AtomicU32,
    /// Image number that its creator gave, for the profiler. Written at creation.
    pub image: AtomicU32,
    /// Name, padded with zeroes. Written at creation.
    pub name: [AtomicU64; 2],
    /// Frame of its root table; 0 once it has none. The sampling path reads it.
    pub root: AtomicU32,
    /// Set once, when its end has begun: no thread of it runs a user instruction after its CPU has seen this.
    pub dead: AtomicBool,
    /// Its address space.
    pub space: Lock<Space, { rank::SPACE }>,
    /// Its handles.
    pub handles: Lock<HandleTable, { rank::HANDLES }>,
    /// Its threads and its end.
    pub life: Lock<Life, { rank::THREADS }>,
    /// CPUs that have its space loaded.
    pub active: AtomicU64,
    /// Pages charged to it.
    pub pages: AtomicU64,
    /// Pages it may be charged. Once it has ended, those it still is.
    pub quota: AtomicU64,
    /// Pool slot of the process its quota came from.
    pub parent: AtomicU32,
    /// Objects counted to it, by [`Counted`].
    pub objects: [AtomicU32; COUNTED],
    /// TSC ticks that its ended threads ran.
    pub cpu_ticks: AtomicU64,
    /// TSC ticks that processes ran whose quota came from it, and that are gone.
    pub gone_ticks: AtomicU64,
    /// Objects on its account that nobody names any more and that are being freed.
    pub freeing: AtomicU32,
    /// Handles, charges and the process itself until its teardown is done.
    pub refs: AtomicU32,
    /// Handles and holds alone, each of which is in `refs` too.
    pub names: AtomicU32,
}

impl Process {
    /// Its name, padded with zeroes.
    #[must_use]
    pub fn name(&self) -> [u8; NAME_MAX] {
        let words = [
            self.name[0].load(Ordering::Relaxed),
            self.name[1].load(Ordering::Relaxed),
        ];
        zerocopy::transmute!(words)
    }
    /// An empty slot.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            pid: AtomicU32::new(0),
            image: AtomicU32::new(0),
            name: [const { AtomicU64::new(0) }; 2],
            root: AtomicU32::new(0),
            dead: AtomicBool::new(false),
            space: Lock::new(Space::new()),
            handles: Lock::new(HandleTable::new()),
            life: Lock::new(Life {
                threads: ThreadId::NONE,
                live: 0,
                reason: ExitReason::Running,
                code: 0,
                crash: NO_CRASH,
                watcher: None,
                teardown: Teardown::Alive,
            }),
            active: AtomicU64::new(0),
            pages: AtomicU64::new(0),
            quota: AtomicU64::new(0),
            parent: AtomicU32::new(u32::MAX),
            objects: [const { AtomicU32::new(0) }; COUNTED],
            cpu_ticks: AtomicU64::new(0),
            gone_ticks: AtomicU64::new(0),
            freeing: AtomicU32::new(0),
            refs: AtomicU32::new(0),
            names: AtomicU32::new(0),
        }
    }

    /// Its root table.
    #[must_use]
    #[inline]
    pub fn root(&self) -> Option<Frame> {
        match self.root.load(Ordering::Acquire) {
            0 => None,
            frame => Some(Frame(frame)),
        }
    }

    /// Whether its end has begun.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// Charges pages, if its quota allows.
    #[must_use]
    pub fn charge(&self, pages: u64) -> bool {
        let quota = self.quota.load(Ordering::Relaxed);
        self.pages
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(pages).filter(|&total| total <= quota)
            })
            .is_ok()
    }

    /// Takes pages off its account.
    pub fn uncharge(&self, pages: u64) {
        let was = self.pages.fetch_sub(pages, Ordering::Relaxed);
        debug_assert!(was >= pages, "more pages taken off than were charged");
    }

    /// Whether an object on its account is being freed. What is free by the time of this load is off its account after it.
    #[must_use]
    pub fn is_freeing(&self) -> bool {
        self.freeing.load(Ordering::Acquire) != 0
    }

    /// Counts one more object of a kind, if it has fewer than `most`.
    #[must_use]
    pub fn count(&self, kind: Counted, most: u32) -> bool {
        self.objects[kind as usize]
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                (used < most).then_some(used + 1)
            })
            .is_ok()
    }

    /// Counts one object of a kind less.
    pub fn uncount(&self, kind: Counted) {
        self.objects[kind as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

/// No crash.
pub const NO_CRASH: CrashReport = CrashReport {
    kind: 0,
    tid: 0,
    error_code: 0,
    address: 0,
    registers: [0; 18],
    frames: 0,
    backtrace: [0; ipc::abi::exit::BACKTRACE_MAX],
    end: 0,
};
