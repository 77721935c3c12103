//! Threads. What a thread does is one atomic word, its [`Status`]: a state and a sequence number that grows each time it
//! blocks and each time it is made to run again.
//!
//! # Who owns a thread
//! * Running: the CPU it runs on. * Ready: the run queue it is in. * Blocked: nobody; whoever wants to wake it *claims* it
//!   by exchanging the exact status it saw for `Claimed`. A call that arrives, a reply, a deadline and a kill may race; exactly
//!   one claim succeeds. * Claimed: the claimer, until it makes the thread ready, runs it, puts it back or ends it.
//!
//! A thread blocks in this order: its registers are complete, its CPU's `current` is cleared, its queue links are set under the
//! queue's lock, and only then its status says so. A claimer may therefore run it at once on any CPU.

use super::notification::Notification;
use crate::base::addr::PhysAddr;
use crate::base::pool::Ref;
use crate::base::regs::SavedRegs;
use crate::object::memory::Memory;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
use ipc::abi::info::ThreadState;

/// A thread's slot in the pool. Whether the thread in it is the one meant is told by a sequence number or by ownership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct ThreadId(pub u32);

impl ThreadId {
    /// No thread, in an atomic word.
    pub const NONE: u32 = u32::MAX;
    /// From an atomic word.
    #[must_use]
    #[inline]
    pub const fn from_word(word: u32) -> Option<Self> {
        if word == Self::NONE {
            None
        } else {
            Some(Self(word))
        }
    }
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// The slot holds no thread, or one that has ended.
    Dead = 0,
    /// Created, not started.
    Held = 1,
    /// In a run queue.
    Ready = 2,
    /// On a CPU.
    Running = 3,
    /// Waits for a call, for bits, or both.
    Receiving = 4,
    /// Its call waits in an endpoint's queue.
    Queued = 5,
    /// Its call was received; it waits for the reply.
    Called = 6,
    /// Waits on a notification.
    Waiting = 7,
    /// Waits for a time.
    Sleeping = 8,
    /// Waits for translations to be flushed.
    Unmapping = 9,
    /// Owned by a claimer.
    Claimed = 10,
}

impl State {
    const ALL: [Self; 11] = [
        Self::Dead,
        Self::Held,
        Self::Ready,
        Self::Running,
        Self::Receiving,
        Self::Queued,
        Self::Called,
        Self::Waiting,
        Self::Sleeping,
        Self::Unmapping,
        Self::Claimed,
    ];
    /// Whether a claim can succeed.
    #[must_use]
    pub const fn is_blocked(self) -> bool {
        matches!(
            self,
            Self::Receiving
                | Self::Queued
                | Self::Called
                | Self::Waiting
                | Self::Sleeping
                | Self::Unmapping
        )
    }
    /// As programs see it.
    #[must_use]
    pub const fn public(self) -> ThreadState {
        match self {
            Self::Dead => ThreadState::Dead,
            Self::Held => ThreadState::Held,
            Self::Ready | Self::Claimed => ThreadState::Ready,
            Self::Running => ThreadState::Running,
            Self::Receiving => ThreadState::Receiving,
            Self::Queued | Self::Called => ThreadState::Calling,
            Self::Waiting => ThreadState::Waiting,
            Self::Sleeping => ThreadState::Sleeping,
            Self::Unmapping => ThreadState::Unmapping,
        }
    }
}

/// A state and a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u64);

impl Status {
    const fn new(sequence: u64, state: State) -> Self {
        Self(sequence << 8 | state as u64)
    }
    /// The state.
    #[must_use]
    pub fn state(self) -> State {
        State::ALL
            .get((self.0 & 0xff) as usize)
            .copied()
            .unwrap_or(State::Dead)
    }
    /// As one word, which no two waits share.
    #[must_use]
    #[inline]
    pub const fn raw(self) -> u64 {
        self.0
    }
    /// What a thread's status is while it waits for the reply to the call with this sequence number.
    #[must_use]
    pub const fn in_call(sequence: u64) -> Self {
        Self::new(sequence, State::Called)
    }
    /// The sequence number.
    #[must_use]
    pub const fn sequence(self) -> u64 {
        self.0 >> 8
    }
}

/// Any CPU, in [`Thread::pinned`].
pub const ANY_CPU: u8 = u8::MAX;
/// Priorities; the highest is `PRIORITIES - 1`.
pub const PRIORITIES: usize = ipc::abi::layout::PRIORITY_MAX as usize + 1;

/// A thread. Fields are atomics, so that a look from the sampling path or from a stale reference is always defined; each
/// says who writes it.
#[derive(Debug)]
pub struct Thread {
    /// Registers while not running. Written by the entry stubs while running, by the claimer while claimed.
    pub regs: SavedRegs,
    status: AtomicU64,
    /// Pool slot of its process. Written at creation.
    pub process: AtomicU32,
    /// The number of its process and, in the upper half, its own, which is never reused: a word of a sample's record. Written at
    /// creation.
    pub ids: AtomicU64,
    /// Its process's image. Written at creation.
    pub image: AtomicU32,
    /// Priority it was given.
    pub base_priority: AtomicU8,
    /// Priority it has: the given one, or more while it serves.
    pub priority: AtomicU8,
    /// CPU it may run on, or [`ANY_CPU`].
    pub pinned: AtomicU8,
    /// CPU it ran on last.
    pub last_cpu: AtomicU8,
    /// CPU whose run queue holds it. Under that queue's lock.
    pub queue_cpu: AtomicU8,
    /// Priority under which it is queued. Under the queue's lock.
    pub queue_priority: AtomicU8,
    /// Neighbours in the queue it is in. Under the queue's lock.
    pub next: AtomicU32,
    /// See `next`.
    pub previous: AtomicU32,
    /// Whether it is in an endpoint's, notification's or shootdown queue. Under that queue's lock.
    pub linked: AtomicBool,
    /// Endpoint or notification it is blocked on, as a packed reference; 0 if none.
    pub blocked_on: AtomicU64,
    /// The endpoint it last received from, as a packed reference: whose queue raises it.
    pub receives_from: AtomicU64,
    /// Thread whose call it serves ([`ThreadId::NONE`]: none), and that thread's sequence number in the call. Written by the
    /// thread itself, or by who delivers a call to it.
    pub serving: AtomicU32,
    /// See `serving`.
    pub serving_sequence: AtomicU64,
    /// Thread that serves its call. Written by who sets that one's `serving`.
    pub server: AtomicU32,
    /// Notification bound to it, as a packed reference.
    pub bound: AtomicU64,
    /// Badge that its queued call carries. Written by the thread before it queues.
    pub badge: AtomicU64,
    /// Physical address of its IPC buffer. Written at creation.
    pub buffer: AtomicU64,
    /// Memory object that holds the buffer, as a packed reference.
    pub buffer_object: AtomicU64,
    /// FS base. Written at creation.
    pub fs_base: AtomicU64,
    /// Stack pointer that it began with. Written at creation.
    pub stack: AtomicU64,
    /// Deadline of what it waits for, in nanoseconds.
    pub deadline: AtomicU64,
    /// CPU whose timer queue holds its deadline; `ANY_CPU` if none.
    pub timer_cpu: AtomicU8,
    /// Sequence number that the deadline is for. Under that timer queue's lock.
    pub timer_sequence: AtomicU64,
    /// Memory object that a restarted call is filling, as a packed reference; only the thread itself uses it.
    pub filling: AtomicU64,
    /// Where a restarted search goes on; only the thread itself uses it.
    pub cursor: AtomicU64,
    /// Epoch that an unmapping thread waits for, or one that looks for frames in a row.
    pub awaited_epoch: AtomicU64,
    /// CPUs that have to pass it.
    pub awaited_cpus: AtomicU64,
    /// Neighbour in its process's list of threads. Under the process's lock.
    pub sibling: AtomicU32,
    /// TSC ticks it ran.
    pub cpu_ticks: AtomicU64,
    /// Handles and the process's list that name it.
    pub refs: AtomicU32,
}

impl Thread {
    /// An empty slot.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            regs: SavedRegs::new(),
            status: AtomicU64::new(0),
            process: AtomicU32::new(u32::MAX),
            ids: AtomicU64::new(0),
            image: AtomicU32::new(0),
            base_priority: AtomicU8::new(0),
            priority: AtomicU8::new(0),
            pinned: AtomicU8::new(ANY_CPU),
            last_cpu: AtomicU8::new(0),
            queue_cpu: AtomicU8::new(ANY_CPU),
            queue_priority: AtomicU8::new(0),
            next: AtomicU32::new(ThreadId::NONE),
            previous: AtomicU32::new(ThreadId::NONE),
            linked: AtomicBool::new(false),
            blocked_on: AtomicU64::new(0),
            receives_from: AtomicU64::new(0),
            serving: AtomicU32::new(ThreadId::NONE),
            serving_sequence: AtomicU64::new(0),
            server: AtomicU32::new(ThreadId::NONE),
            bound: AtomicU64::new(0),
            badge: AtomicU64::new(0),
            buffer: AtomicU64::new(0),
            buffer_object: AtomicU64::new(0),
            fs_base: AtomicU64::new(0),
            stack: AtomicU64::new(0),
            deadline: AtomicU64::new(u64::MAX),
            timer_cpu: AtomicU8::new(ANY_CPU),
            timer_sequence: AtomicU64::new(0),
            filling: AtomicU64::new(0),
            cursor: AtomicU64::new(0),
            awaited_epoch: AtomicU64::new(0),
            awaited_cpus: AtomicU64::new(0),
            sibling: AtomicU32::new(ThreadId::NONE),
            cpu_ticks: AtomicU64::new(0),
            refs: AtomicU32::new(0),
        }
    }

    /// Its number.
    #[must_use]
    pub fn tid(&self) -> u32 {
        (self.ids.load(Ordering::Relaxed) >> 32) as u32
    }

    /// Its status now.
    #[must_use]
    #[inline]
    pub fn status(&self) -> Status {
        Status(self.status.load(Ordering::Acquire))
    }

    /// For its owner: the next status, with a new sequence number. Everything written before is seen by who claims it.
    pub fn publish(&self, state: State) -> Status {
        let next = Status::new(self.status().sequence() + 1, state);
        self.status.store(next.0, Ordering::Release);
        next
    }

    /// The sequence number that [`publish`](Self::publish) will give.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.status().sequence() + 1
    }

    /// For its owner: another state under the same sequence number.
    pub fn change(&self, state: State) {
        self.status.store(
            Status::new(self.status().sequence(), state).0,
            Ordering::Release,
        );
    }

    /// Makes the caller the owner, if the thread is still exactly in `seen`, a blocked state.
    #[must_use]
    pub fn claim(&self, seen: Status) -> bool {
        let claimed = seen.state().is_blocked() && self.exchange(seen);
        // A sample that sees anything that is written to the thread from here on also sees that its status has changed.
        fence(Ordering::Release);
        claimed
    }

    fn exchange(&self, seen: Status) -> bool {
        let claimed = Status::new(seen.sequence(), State::Claimed);
        self.status
            .compare_exchange(seen.0, claimed.0, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Claims it if it is in the call with this sequence number.
    #[must_use]
    pub fn claim_call(&self, sequence: u64) -> bool {
        self.claim(Status::new(sequence, State::Called))
    }

    /// Claims it from `Held`, to start or end it.
    #[must_use]
    pub fn claim_held(&self) -> bool {
        let seen = self.status();
        seen.state() == State::Held && self.exchange(seen)
    }

    /// The thread whose call it serves, and that one's sequence number.
    #[must_use]
    #[inline]
    pub fn served(&self) -> Option<(ThreadId, u64)> {
        let thread = ThreadId::from_word(self.serving.load(Ordering::Acquire))?;
        Some((thread, self.serving_sequence.load(Ordering::Acquire)))
    }

    /// For its owner: sets or clears the serving link. The link is cleared in between, so that a sample never pairs one
    /// thread with another's sequence number.
    pub fn set_serving(&self, served: Option<(ThreadId, u64)>) {
        self.serving.store(ThreadId::NONE, Ordering::Release);
        if let Some((thread, sequence)) = served {
            self.serving_sequence.store(sequence, Ordering::Release);
            self.serving.store(thread.0, Ordering::Release);
        }
    }

    /// Physical address of its IPC buffer.
    #[must_use]
    pub fn buffer(&self) -> PhysAddr {
        PhysAddr(self.buffer.load(Ordering::Relaxed))
    }

    /// The notification bound to it.
    #[must_use]
    pub fn bound(&self) -> Option<Ref<Notification>> {
        Ref::unpack(self.bound.load(Ordering::Acquire))
    }

    /// The memory object a restarted call is filling.
    #[must_use]
    pub fn filling(&self) -> Option<Ref<Memory>> {
        Ref::unpack(self.filling.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_claim_succeeds_and_a_stale_one_fails() {
        let thread = Thread::empty();
        let first = thread.publish(State::Called);
        assert!(
            thread.claim(first) && !thread.claim(first) && !thread.claim_call(first.sequence())
        );
        thread.publish(State::Running);
        let second = thread.publish(State::Called);
        assert!(!thread.claim(first) && !thread.claim_call(first.sequence()));
        assert!(thread.claim_call(second.sequence()));
    }
}
