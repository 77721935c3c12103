//! The trace: what happens on each CPU, event by event, while somebody wants to know.
//!
//! While nobody does, an event costs a look at [`Kernel::tracing`] and a branch that is not taken; what there is to say is put
//! together behind it, away from the path. A CPU writes to its own ring with interrupts off, so nothing is ever
//! waited for; NMIs write nothing.

mod ring;

pub use ring::{Reading, Ring, Slot};

use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::{Thread, ThreadId};
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::trace::{TraceKind, TraceRecord};

/// An event, to be written down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    kind: TraceKind,
    who: u64,
    detail: u32,
    words: [u64; 2],
}

impl Event {
    /// Of nobody.
    pub(crate) const fn new(kind: TraceKind) -> Self {
        Self {
            kind,
            who: 0,
            detail: 0,
            words: [0; 2],
        }
    }
    /// Of a process, and a thread of it or none.
    pub(crate) const fn of(self, pid: u32, tid: u32) -> Self {
        Self {
            who: pid as u64 | (tid as u64) << 32,
            ..self
        }
    }
    /// With what its kind calls the detail.
    pub(crate) const fn detail(self, detail: u32) -> Self {
        Self { detail, ..self }
    }
    /// With the words of its kind.
    pub(crate) const fn words(self, first: u64, second: u64) -> Self {
        Self {
            words: [first, second],
            ..self
        }
    }
}

impl<H: Hardware> Kernel<H> {
    /// Whether events are traced: what each place that has one to tell asks first. What it would tell is put together behind the
    /// answer, and not in a closure: that would hold on to it before.
    #[inline(always)]
    pub(crate) fn is_tracing(&self) -> bool {
        self.tracing.load(Relaxed)
    }

    /// An event of a thread.
    pub(crate) fn event(&self, kind: TraceKind, id: ThreadId) -> Event {
        self.event_of(kind, self.thread(id))
    }

    /// As [`Self::event`], of a thread that is at hand.
    pub(crate) fn event_of(&self, kind: TraceKind, thread: &Thread) -> Event {
        let pid = self.process_of(thread).pid.load(Relaxed);
        Event::new(kind).of(pid, thread.tid())
    }

    /// The thread id of a thread, as an event's word.
    pub(crate) fn tid(&self, id: ThreadId) -> u64 {
        self.thread(id).tid().into()
    }

    /// Writes an event down.
    #[cold]
    #[inline(never)]
    pub(crate) fn record(&self, cpu: &CpuState, event: Event) {
        cpu.trace.write(TraceRecord {
            // The ring gives it.
            sequence: 0,
            tsc: self.hw.tsc().0,
            event: event.kind as u64 | u64::from(event.detail) << 32,
            who: event.who,
            words: event.words,
        });
    }
}
