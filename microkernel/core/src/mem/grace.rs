//! Grace periods: when may a thing that was unlinked be used for something else?
//!
//! A frame, a page table or an object that was just unlinked may still be in another CPU's translations, or under the eyes of
//! its sampling interrupt. It is free once every CPU has passed a point where it holds nothing: a *quiescent point*. A
//! CPU passes one only by its own act, at kernel exit or in its tick, and flushes its user translations there; that
//! it runs user code or idles proves nothing, since its translations live on.
//!
//! Time is cut into epochs. What is unlinked in epoch `e` is safe once every CPU has passed a quiescent point that
//! began in an epoch after `e`:
//!
//! 1. the one who frees unlinks the thing, then takes [`Grace::retire_epoch`] as its tag;
//! 2. somebody makes sure that the epoch ends: [`Grace::advance`];
//! 3. each CPU, at its quiescent point, asks [`Grace::pending`], flushes, and says [`Grace::pass`];
//! 4. the thing may be reused when [`Grace::passed`] says so for its tag.
//!
//! # Why this is enough
//! Let `U` be the store that unlinks, tagged `e`, and let CPU `c` have passed epoch `g > e`. In `retire_epoch` a
//! sequentially consistent fence `F1` stands between `U` and the load of the current epoch; in `pending` such a fence `F2`
//! follows the load. The first load saw `e`, the second saw `g`, which the counter reached later, and it acquired the
//! step that `advance` released; so `F1` is before `F2` in the order of such fences, and everything that `c` loads or walks after
//! `F2` finds `U` done. What `c` had loaded before is gone: it holds no reference at a quiescent point, and it flushes
//! translations between `pending` and `pass`. `pass` releases and `passed` acquires, so all accesses of `c` up to that
//! point happen before the reuse. An interrupt that samples runs to its end between two instructions of its CPU, and
//! so on one side of each of these steps.
//!
//! The counter is 64 bits wide and steps once per grace period at most: it does not wrap.

use crate::base::cpu::{CPUS_MAX, Cpu};
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// A span of time between two steps of [`Grace::advance`]; later is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(u64);

impl Epoch {
    /// Before the first: nothing was retired in it.
    pub const NONE: Self = Self(0);

    /// As a word, to be kept in an atomic or in an object.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }
    /// From the word that [`Epoch::raw`] gave.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
}

/// What one CPU has passed, alone on its cache line: the CPU writes it often, others read it seldom.
#[derive(Debug)]
#[repr(align(64))]
struct Passed(AtomicU64);

/// Epochs, and which CPU has passed which.
#[derive(Debug)]
pub struct Grace {
    current: AtomicU64,
    /// Bit per CPU that takes part.
    online: AtomicU64,
    passed: [Passed; CPUS_MAX],
}

impl Grace {
    /// The first epoch, and no CPU online.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            current: AtomicU64::new(1),
            online: AtomicU64::new(0),
            passed: [const { Passed(AtomicU64::new(0)) }; CPUS_MAX],
        }
    }

    /// Makes this CPU take part. Called once on each CPU, before it looks at anything that is freed by grace periods and
    /// before it has user translations.
    pub fn join(&self, cpu: &Cpu) {
        let now = self.current.load(Ordering::SeqCst);
        self.passed[cpu.id().index()].0.store(now, Ordering::SeqCst);
        self.online.fetch_or(cpu.id().bit(), Ordering::SeqCst);
        // What was found passed without this CPU was unlinked before; from here on this CPU sees that.
        fence(Ordering::SeqCst);
    }

    /// CPUs that take part, a bit each.
    #[must_use]
    pub fn online(&self) -> u64 {
        self.online.load(Ordering::SeqCst)
    }

    /// The tag of what the caller has unlinked by now.
    /// A mask of those who may hold it is read after this, for the same fence.
    #[must_use]
    pub fn retire_epoch(&self) -> Epoch {
        fence(Ordering::SeqCst);
        Epoch(self.current.load(Ordering::SeqCst))
    }

    /// Ends `epoch` if it has not ended, so that what was retired in it can pass. Calling it again, or on several CPUs, is one
    /// step: epochs are no more frequent than they are needed.
    pub fn advance(&self, epoch: Epoch) {
        // Failure means that the epoch has ended already, since tags are never from the future.
        let _ =
            self.current
                .compare_exchange(epoch.0, epoch.0 + 1, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// At a quiescent point: what this CPU has still to pass. It must flush all its user translations before it says
    /// [`Grace::pass`]. `None`, the usual answer, costs two loads.
    #[must_use]
    pub fn pending(&self, cpu: &Cpu) -> Option<Epoch> {
        let current = self.current.load(Ordering::SeqCst);
        if self.passed[cpu.id().index()].0.load(Ordering::Relaxed) == current {
            return None;
        }
        fence(Ordering::SeqCst);
        Some(Epoch(current))
    }

    /// This CPU was quiescent, and has flushed since [`Grace::pending`] gave `epoch`.
    pub fn pass(&self, cpu: &Cpu, epoch: Epoch) {
        self.passed[cpu.id().index()]
            .0
            .store(epoch.0, Ordering::Release);
    }

    /// Those CPUs of `mask` that have not passed what was retired in `epoch`; CPUs that are not online have nothing to pass.
    #[must_use]
    pub fn stragglers(&self, mask: u64, epoch: Epoch) -> u64 {
        // With the fence in `join`: a CPU that is not seen online here sees what the caller unlinked.
        fence(Ordering::SeqCst);
        let mut left = mask & self.online();
        let mut late = 0;
        while left != 0 {
            let cpu = left.trailing_zeros() as usize;
            left &= left - 1;
            if self.passed[cpu].0.load(Ordering::Acquire) <= epoch.0 {
                late |= 1 << cpu;
            }
        }
        late
    }

    /// Whether every CPU of `mask` has passed what was retired in `epoch`.
    #[must_use]
    pub fn passed_by(&self, mask: u64, epoch: Epoch) -> bool {
        self.stragglers(mask, epoch) == 0
    }

    /// Whether every CPU has passed what was retired in `epoch`: it may be reused.
    #[must_use]
    pub fn passed(&self, epoch: Epoch) -> bool {
        self.passed_by(u64::MAX, epoch)
    }
}

impl Default for Grace {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::cpu::CpuId;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize};
    use std::time::{Duration, Instant};

    fn quiescent(grace: &Grace, cpu: &Cpu) {
        if let Some(epoch) = grace.pending(cpu) {
            grace.pass(cpu, epoch);
        }
    }

    #[test]
    fn only_the_cpus_that_are_online_count_and_each_must_pass() {
        let (grace, cpus) = (Grace::new(), [Cpu::new(CpuId(0)), Cpu::new(CpuId(63))]);
        let early = grace.retire_epoch();
        assert!(grace.passed(early), "nobody is there to hold anything");
        cpus.iter().for_each(|cpu| grace.join(cpu));
        let tag = grace.retire_epoch();
        cpus.iter().for_each(|cpu| quiescent(&grace, cpu));
        assert!(!grace.passed(tag), "the epoch has not ended");
        grace.advance(tag);
        grace.advance(tag);
        quiescent(&grace, &cpus[1]);
        assert!(!grace.passed(tag) && grace.passed_by(1 << 63, tag));
        assert_eq!(grace.stragglers(u64::MAX, tag), 1);
        quiescent(&grace, &cpus[0]);
        assert!(grace.passed(tag) && grace.pending(&cpus[0]).is_none());
        assert!(!grace.passed(grace.retire_epoch()));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Join(usize),
        Retire,
        Advance(usize),
        /// A quiescent point begins: `pending`.
        Begin(usize),
        /// It ends: `pass`.
        End(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            1 => (0..4usize).prop_map(Step::Join),
            3 => Just(Step::Retire),
            3 => any::<usize>().prop_map(Step::Advance),
            5 => (0..4usize).prop_map(Step::Begin),
            5 => (0..4usize).prop_map(Step::End),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        /// Against the definition: a tag passes only when each CPU that was online at retirement has begun and ended a
        /// quiescent point since; and it does pass when all have, after an advance.
        #[test]
        fn a_tag_passes_when_every_cpu_was_quiescent_since(steps in prop::collection::vec(step(), 0..120)) {
            let grace = Grace::new();
            let cpus: Vec<Cpu> = (0..4).map(|id| Cpu::new(CpuId(id))).collect();
            let mut begun: [Option<(usize, Epoch)>; 4] = [None; 4];
            let mut online = [false; 4];
            // Tag, time of retirement, CPUs that may still hold it.
            let mut retired: Vec<(Epoch, usize, Vec<usize>)> = Vec::new();
            for (time, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Join(cpu) if !online[cpu] => {
                        online[cpu] = true;
                        grace.join(&cpus[cpu]);
                    }
                    Step::Join(_) => {}
                    Step::Retire => retired.push((grace.retire_epoch(), time, (0..4).filter(|&cpu| online[cpu]).collect())),
                    Step::Advance(pick) => if let Some((tag, ..)) = retired.get(pick % retired.len().max(1)) {
                        grace.advance(*tag);
                    },
                    Step::Begin(cpu) if online[cpu] => begun[cpu] = grace.pending(&cpus[cpu]).map(|epoch| (time, epoch)),
                    Step::Begin(_) => {}
                    Step::End(cpu) => if let Some((since, epoch)) = begun[cpu].take() {
                        grace.pass(&cpus[cpu], epoch);
                        for (_, at, holders) in &mut retired {
                            if *at < since {
                                holders.retain(|&holder| holder != cpu);
                            }
                        }
                    },
                }
                for (tag, _, holders) in &retired {
                    prop_assert!(!grace.passed(*tag) || holders.is_empty(), "{tag:?} passed before {holders:?}");
                }
            }
            for (tag, ..) in &retired {
                grace.advance(*tag);
            }
            (0..4).filter(|&cpu| online[cpu]).for_each(|cpu| quiescent(&grace, &cpus[cpu]));
            prop_assert!(retired.iter().all(|(tag, ..)| grace.passed(*tag)));
        }
    }

    /// Real threads as CPUs: what is published is replaced, retired, and destroyed once it passed; nobody may
    /// meet a destroyed one.
    #[test]
    fn nobody_meets_what_was_reused() {
        const READERS: u8 = 3;
        const ROUNDS: usize = 4000;
        let grace = Grace::new();
        let things: Vec<AtomicBool> = (0..8).map(|_| AtomicBool::new(false)).collect();
        let (published, ready, met, done) = (
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            AtomicBool::new(false),
        );
        let end = Instant::now() + Duration::from_secs(120);
        things[0].store(true, Ordering::Relaxed);
        std::thread::scope(|scope| {
            for id in 1..=READERS {
                let (grace, things, published, ready, met, done) =
                    (&grace, &things, &published, &ready, &met, &done);
                scope.spawn(move || {
                    let cpu = Cpu::new(CpuId(id));
                    grace.join(&cpu);
                    ready.fetch_add(1, Ordering::SeqCst);
                    while !done.load(Ordering::Relaxed) {
                        let held = published.load(Ordering::Acquire);
                        for _ in 0..4 {
                            if !things[held].load(Ordering::Relaxed) {
                                met.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                        quiescent(grace, &cpu);
                        std::thread::yield_now();
                    }
                });
            }
            let writer = Cpu::new(CpuId(0));
            grace.join(&writer);
            while ready.load(Ordering::SeqCst) < READERS.into() {
                std::thread::yield_now();
            }
            for round in 1..=ROUNDS {
                let (old, new) = ((round - 1) % things.len(), round % things.len());
                things[new].store(true, Ordering::Relaxed);
                // Publishing releases, as for any object; retiring is what is under test.
                published.store(new, Ordering::Release);
                let tag = grace.retire_epoch();
                grace.advance(tag);
                while !grace.passed(tag) && Instant::now() < end {
                    quiescent(&grace, &writer);
                    std::thread::yield_now();
                }
                things[old].store(false, Ordering::Relaxed);
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(met.into_inner(), 0, "a reader met what was destroyed");
        assert!(Instant::now() < end, "a tag never passed");
    }
}
