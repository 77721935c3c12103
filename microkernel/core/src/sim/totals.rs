//! Laws about sums: every count is what can be counted, and every frame is free, waiting or paid for.

use super::Sim;
use crate::base::pool::{Pool, Ref};
use crate::object::memory::Backing;
use crate::object::process::{COUNTED, Counted, Teardown};
use crate::object::thread::State;
use crate::object::{Memory, Object};
use ipc::abi::Rights;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Kinds of counts, each with the slot it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Count {
    Process(u32),
    Names(u32),
    Thread(u32),
    Endpoint(u32),
    Receivers(u32),
    Badge(u32),
    Notification(u32),
    Memory(u32),
    Line(u32),
}

type Counts = BTreeMap<Count, u32>;

fn add(counts: &mut Counts, count: Count) {
    *counts.entry(count).or_default() += 1;
}

fn used<T>(pool: &Pool<T>) -> impl Iterator<Item = (u32, &'static T)> + '_ {
    (0..pool.len())
        .filter(|&slot| pool.reference(slot).is_some())
        .map(|slot| (slot, pool.at(slot).unwrap()))
}

impl Sim {
    pub(super) fn check_totals(&self) {
        self.check_counts();
        self.check_reach();
        self.check_frames();
    }

    fn check_counts(&self) {
        let (pools, token) = (&self.kernel.pools, &self.cpu(0).token);
        let mut counts = Counts::new();
        for (_, grant) in self.grants() {
            match grant.object {
                Object::Process(reference) => {
                    add(&mut counts, Count::Process(reference.index()));
                    add(&mut counts, Count::Names(reference.index()));
                }
                Object::Thread(reference) => add(&mut counts, Count::Thread(reference.index())),
                Object::Endpoint(reference, badge) => {
                    assert!(pools.endpoints.get(reference).is_some());
                    add(&mut counts, Count::Endpoint(reference.index()));
                    if grant.rights.contains(Rights::RECEIVE) {
                        add(&mut counts, Count::Receivers(reference.index()));
                    }
                    if let Some(badge) = badge {
                        assert!(pools.badges.get(badge).is_some());
                        add(&mut counts, Count::Badge(badge.index()));
                    }
                }
                Object::Notification(reference) => {
                    assert!(pools.notifications.get(reference).is_some());
                    add(&mut counts, Count::Notification(reference.index()));
                }
                Object::Memory(reference) => add(&mut counts, Count::Memory(reference.index())),
                Object::Interrupt(line) => add(&mut counts, Count::Line(line)),
                _ => {}
            }
        }
        self.count_kernel_links(&mut counts);
        let mut expect = |what: Count, count: &AtomicU32| {
            let counted = counts.remove(&what).unwrap_or(0);
            assert_eq!(count.load(Relaxed), counted, "{what:?}");
        };
        for (slot, process) in used(&pools.processes) {
            expect(Count::Process(slot), &process.refs);
            expect(Count::Names(slot), &process.names);
        }
        for (slot, thread) in used(&pools.threads) {
            expect(Count::Thread(slot), &thread.refs);
        }
        for (slot, endpoint) in used(&pools.endpoints) {
            expect(Count::Endpoint(slot), &endpoint.refs);
            expect(Count::Receivers(slot), &endpoint.receivers);
        }
        for (slot, badge) in used(&pools.badges) {
            expect(Count::Badge(slot), &badge.refs);
        }
        for (slot, notification) in used(&pools.notifications) {
            expect(Count::Notification(slot), &notification.refs);
        }
        for (slot, memory) in used(&pools.memory) {
            expect(Count::Memory(slot), &memory.refs);
        }
        let mut lines = self.kernel.lines.lock(token);
        for line in 0..ipc::abi::layout::INTERRUPTS {
            let handles = lines
                .place(line)
                .and_then(|place| *place)
                .map_or(0, |taken| taken.handles);
            expect(Count::Line(line), &AtomicU32::new(handles));
        }
        assert!(counts.is_empty(), "counted, but not in use: {counts:?}");
    }

    /// Counts that are not handles.
    fn count_kernel_links(&self, counts: &mut Counts) {
        let (kernel, pools, token) = (&self.kernel, &self.kernel.pools, &self.cpu(0).token);
        let memory = |counts: &mut Counts, word: u64| {
            if let Some(reference) = Ref::<Memory>::unpack(word) {
                assert!(pools.memory.get(reference).is_some());
                add(counts, Count::Memory(reference.index()));
            }
        };
        let mut objects = BTreeMap::<(u32, usize), u32>::new();
        for (slot, thread) in used(&pools.threads) {
            let owner = thread.process.load(Relaxed);
            *objects
                .entry((owner, Counted::Threads as usize))
                .or_default() += 1;
            if thread.status().state() != State::Dead {
                add(counts, Count::Thread(slot));
            }
            memory(counts, thread.buffer_object.load(Relaxed));
            memory(counts, thread.filling.load(Relaxed));
        }
        let mut owned = |owner: &AtomicU32, kind: Counted| {
            *objects
                .entry((owner.load(Relaxed), kind as usize))
                .or_default() += 1;
        };
        used(&pools.endpoints).for_each(|(_, object)| owned(&object.owner, Counted::Endpoints));
        used(&pools.notifications)
            .for_each(|(_, object)| owned(&object.owner, Counted::Notifications));
        used(&pools.badges).for_each(|(_, object)| owned(&object.owner, Counted::Badges));
        for (_, object) in used(&pools.memory) {
            owned(&object.payer, Counted::Memory);
            if let Backing::Borrowed(_, Some(whole)) = object.pages.lock(token).backing {
                memory(counts, whole.pack());
            }
        }
        memory(counts, kernel.rings_object.load(Relaxed));
        let mut notified: Vec<_> = kernel
            .profiler_watcher
            .lock(token)
            .iter()
            .copied()
            .collect();
        for line in 0..ipc::abi::layout::INTERRUPTS {
            let taken = kernel
                .lines
                .lock(token)
                .place(line)
                .and_then(|place| *place);
            notified.extend(taken.map(|taken| (taken.notification, taken.bits)));
        }
        for (slot, process) in used(&pools.processes) {
            let (watcher, teardown) = {
                let life = process.life.lock(token);
                (life.watcher, life.teardown)
            };
            notified.extend(watcher);
            // The slot of an ended process that nobody names waits for a grace period of its own.
            let ended = match teardown {
                Teardown::Done => true,
                Teardown::Grace(_) => process.refs.load(Relaxed) == 0,
                _ => false,
            };
            if !ended {
                add(counts, Count::Process(slot));
            }
            let parent = process.parent.load(Relaxed);
            if parent != u32::MAX {
                add(counts, Count::Process(parent));
            }
            for (_, mapped) in process.space.lock(token).mapped() {
                memory(counts, mapped.pack());
            }
            for kind in 0..COUNTED {
                let counted = objects.remove(&(slot, kind)).unwrap_or(0);
                if kind != Counted::Chunks as usize {
                    let said = process.objects[kind].load(Relaxed);
                    assert_eq!(said, counted, "process {slot}, kind {kind}");
                    (0..counted).for_each(|_| add(counts, Count::Process(slot)));
                }
            }
        }
        assert!(objects.is_empty(), "objects of nobody: {objects:?}");
        for (notification, _) in notified {
            add(counts, Count::Notification(notification.index()));
        }
        let chunks: u32 = used(&pools.processes)
            .map(|(_, process)| process.objects[Counted::Chunks as usize].load(Relaxed))
            .sum();
        assert_eq!(
            pools.chunks.usage(token).0,
            chunks,
            "pieces of handle tables"
        );
    }

    /// Each process that lives has a handle to it, or a thread that has been started or that a handle can start.
    fn check_reach(&self) {
        let pools = &self.kernel.pools;
        let threads = |slot: u32| {
            used(&pools.threads)
                .filter(move |(_, thread)| thread.process.load(Relaxed) == slot)
                .map(|(_, thread)| (thread.status().state(), thread.refs.load(Relaxed)))
                .collect::<Vec<_>>()
        };
        let reaches = |&(state, refs): &(State, u32)| {
            state != State::Dead && (state != State::Held || refs > 1)
        };
        for (slot, process) in used(&pools.processes) {
            let named = process.names.load(Relaxed) != 0;
            let threads = threads(slot);
            assert!(
                process.is_dead() || named || threads.iter().any(reaches),
                "process {slot} with {threads:?}"
            );
        }
    }

    /// Free, waiting or charged: a frame is one of these; and no process is charged more than it may be.
    fn check_frames(&self) {
        let (kernel, token) = (&self.kernel, &self.cpu(0).token);
        let usage = kernel.frames.usage(token);
        let mut charged = 0;
        for (slot, process) in used(&kernel.pools.processes) {
            let (pages, quota) = (process.pages.load(Relaxed), process.quota.load(Relaxed));
            assert!(pages <= quota, "process {slot} has {pages} of {quota}");
            charged += pages;
            if process.parent.load(Relaxed) != u32::MAX {
                charged -= quota;
            }
        }
        let taken = u64::from(usage.total - usage.free - usage.waiting);
        assert_eq!(charged, taken, "pages charged, and frames in use");
    }
}
