//! Laws about threads, queues, CPUs and deadlines, which hold whenever no CPU is in the kernel. [`links`](super::links),
//! [`totals`](super::totals) and [`history`](super::history) hold the others.

use super::Sim;
use crate::base::addr::Nanos;
use crate::base::pool::Ref;
use crate::hardware::Hardware;
use crate::object::queue::PriorityQueue;
use crate::object::thread::{ANY_CPU, State, ThreadId};
use crate::sched::leave::Next;
use crate::sched::wake::RETRY_NANOS;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// Where a thread was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Cpu(usize),
    RunQueue(usize),
    Callers(u32),
    Receivers(u32),
    Waiters(u32),
    Shootdown,
}

impl Sim {
    /// Every law.
    pub fn check(&self) {
        self.check_threads();
        self.check_timers();
        self.check_cpus();
        self.check_links();
        self.check_totals();
        self.check_history();
    }

    pub(super) fn members(&self, queue: &PriorityQueue) -> Vec<ThreadId> {
        let mut members = Vec::new();
        let mut at = queue.first();
        while let Some(id) = at {
            members.push(id);
            assert!(members.len() < 1000, "a queue goes in a circle");
            at = queue.after(&self.kernel.pools.threads, id);
        }
        members
    }

    /// Each thread is in exactly the place that its status says.
    fn check_threads(&self) {
        let (kernel, token) = (&self.kernel, &self.cpu(0).token);
        let mut places = BTreeMap::<u32, Place>::new();
        let mut put = |id: ThreadId, place| {
            let other = places.insert(id.0, place);
            assert_eq!(other, None, "{id:?} is also at {place:?}");
        };
        for (index, cpu) in kernel.cpus.iter().enumerate() {
            if let Some(id) = cpu.current() {
                put(id, Place::Cpu(index));
            }
            for id in self.members(&cpu.queue.lock(token)) {
                put(id, Place::RunQueue(index));
            }
        }
        let pools = &kernel.pools;
        for slot in 0..pools.endpoints.len() {
            let queues = pools.endpoints.at(slot).unwrap().queues.lock(token);
            for id in self.members(&queues.callers) {
                put(id, Place::Callers(slot));
            }
            for id in self.members(&queues.receivers) {
                put(id, Place::Receivers(slot));
            }
        }
        for slot in 0..pools.notifications.len() {
            let bits = pools.notifications.at(slot).unwrap().bits.lock(token);
            for id in self.members(&bits.waiters) {
                put(id, Place::Waiters(slot));
            }
        }
        for id in self.members(&kernel.shootdown.lock(token)) {
            put(id, Place::Shootdown);
        }
        for slot in 0..pools.threads.len() {
            let thread = pools.threads.at(slot).unwrap();
            let (place, state) = (places.get(&slot).copied(), thread.status().state());
            let on = Ref::<()>::unpack(thread.blocked_on.load(Relaxed)).map(|on| on.index());
            let expected = match (state, on) {
                (State::Running, _) => (0..kernel.cpus.len())
                    .map(Place::Cpu)
                    .find(|&cpu| Some(cpu) == place),
                (State::Ready, _) => Some(Place::RunQueue(thread.queue_cpu.load(Relaxed).into())),
                (State::Queued, Some(on)) => Some(Place::Callers(on)),
                (State::Receiving, Some(on)) => Some(Place::Receivers(on)),
                (State::Waiting, Some(on)) => Some(Place::Waiters(on)),
                (State::Unmapping, _) => Some(Place::Shootdown),
                (State::Queued | State::Waiting | State::Claimed, _) => {
                    panic!("thread {slot} is {state:?}, on {on:?}")
                }
                _ => None,
            };
            assert_eq!(place, expected, "thread {slot}, {state:?}");
            if state == State::Running {
                assert!(place.is_some(), "thread {slot} runs nowhere");
            }
            assert_eq!(
                thread.linked.load(Relaxed),
                place.is_some_and(|place| !matches!(place, Place::Cpu(_))),
                "thread {slot}, {state:?}"
            );
            let free = pools.threads.reference(slot).is_none();
            assert!(!free || state == State::Dead, "{state:?} in a free slot");
            if state == State::Ready {
                let pinned = thread.pinned.load(Relaxed);
                assert!(pinned == ANY_CPU || pinned == thread.queue_cpu.load(Relaxed));
                assert_eq!(
                    thread.queue_priority.load(Relaxed),
                    thread.priority.load(Relaxed),
                    "a ready thread is queued by its priority"
                );
            }
            assert!(
                thread.priority.load(Relaxed) >= thread.base_priority.load(Relaxed)
                    || state == State::Dead
            );
        }
    }

    /// A deadline is armed in one timer queue, the one its thread names, and only while the thread waits for it; none is late.
    fn check_timers(&self) {
        let (kernel, token) = (&self.kernel, &self.cpu(0).token);
        let now = self.machine.now();
        for slot in 0..kernel.pools.threads.len() {
            let thread = kernel.pools.threads.at(slot).unwrap();
            let armed: Vec<_> = (0..kernel.cpus.len())
                .filter_map(|cpu| Some((cpu, kernel.cpus[cpu].timers.lock(token).deadline(slot)?)))
                .collect();
            let on = thread.timer_cpu.load(Relaxed);
            match armed[..] {
                [] => assert_eq!(on, ANY_CPU, "thread {slot} names a timer"),
                [(cpu, deadline)] => {
                    assert_eq!(usize::from(on), cpu, "thread {slot}");
                    assert!(thread.status().state().is_blocked());
                    assert_eq!(
                        thread.timer_sequence.load(Relaxed),
                        thread.status().sequence()
                    );
                    let wanted = Nanos(thread.deadline.load(Relaxed));
                    // One that met a claimed thread is looked at again soon.
                    let again = wanted <= now && deadline.0 <= now.0 + RETRY_NANOS;
                    assert!(deadline == wanted || again, "thread {slot}: {deadline:?}");
                }
                _ => panic!("thread {slot} has {armed:?}"),
            }
            let waits = thread.status().state().is_blocked();
            if waits && thread.deadline.load(Relaxed) != u64::MAX {
                assert_eq!(armed.len(), 1, "the deadline of thread {slot} is lost");
            }
        }
        for cpu in kernel.cpus {
            if let Some(next) = cpu.timers.lock(token).next() {
                let set = self.machine.timer(cpu.token.id());
                assert!(
                    set <= next.0,
                    "a deadline at {next:?}, and the timer at {set}"
                );
            }
        }
    }

    /// What others read about a CPU is true; no CPU idles beside work; none runs a thread while a better one waits for it.
    fn check_cpus(&self) {
        let kernel = &self.kernel;
        let kicks = self.machine.kicks();
        for (index, cpu) in kernel.cpus.iter().enumerate() {
            let (id, current) = (cpu.token.id(), cpu.current());
            let priority = current.map_or(0, |id| kernel.thread(id).priority.load(Relaxed));
            if kicks & id.bit() == 0 {
                let shown = cpu.priority.load(Relaxed);
                assert!(shown <= priority, "CPU {index} shows {shown}");
                let ended =
                    current.is_some_and(|id| kernel.process_of(kernel.thread(id)).is_dead());
                assert!(!ended, "CPU {index} runs a program that has ended");
            }
            assert!(matches!(self.next[index], Next::Idle) == current.is_none());
            let announced = kernel.idle.load(Relaxed) & id.bit() != 0;
            assert!(!announced || current.is_none(), "CPU {index} says it idles");
            let loaded = cpu.loaded.load(Relaxed);
            let runs = current.map(|id| kernel.thread(id).process.load(Relaxed));
            assert_eq!(runs.unwrap_or(u32::MAX), loaded, "CPU {index}");
            let root = runs.map_or(0, |slot| kernel.process(slot).root.load(Relaxed));
            assert_eq!(self.machine.root(id), root, "CPU {index}");
            for slot in 0..kernel.pools.processes.len() {
                let active = kernel.process(slot).active.load(Relaxed) & id.bit() != 0;
                assert_eq!(active, loaded == slot, "process {slot} on CPU {index}");
            }
            for (page, frame) in self.machine.reachable(id) {
                assert!(
                    !kernel.frames.is_free(&cpu.token, frame),
                    "CPU {index} still reaches {frame:?} at {page:x}, which is free"
                );
            }
            let highest = cpu.queue.lock(&cpu.token).highest();
            if kicks & id.bit() == 0 && current.is_some() {
                assert!(
                    highest.is_none_or(|highest| highest <= priority),
                    "CPU {index} runs {priority} while {highest:?} waits"
                );
            }
            if kicks == 0 && current.is_none() {
                self.check_idle(index);
            }
        }
    }

    fn check_idle(&self, index: usize) {
        for there in self.kernel.cpus {
            for id in self.members(&there.queue.lock(&there.token)) {
                let pinned = self.kernel.thread(id).pinned.load(Relaxed);
                assert!(
                    pinned != ANY_CPU && usize::from(pinned) != index,
                    "CPU {index} idles, {id:?} waits at CPU {}",
                    there.token.id().0
                );
            }
        }
    }
}
