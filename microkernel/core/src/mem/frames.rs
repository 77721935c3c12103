//! The frame allocator: which frames of RAM are free, which are in use, and which wait for a grace period.
//!
//! A frame that nobody else could see is freed at once ([`Frames::free`]); one that was mapped, held a page table or was
//! otherwise in reach of another CPU is retired ([`Frames::retire`]) and comes back through [`Frames::reclaim`] once its
//! epoch has passed. Every frame has one word here that says which of these it is, so that freeing twice is found.
//!
//! Frames that wait are chained through their words, in two batches: the *open* one takes what is retired now, the *closed* one
//! only waits. A batch has one tag, the latest epoch of its frames, so a frame waits for two grace periods at most, and
//! no frame needs room for a tag of its own.
//!
//! Single frames come lowest first: what is in use stays together and runs for DMA stay whole. Contents are whatever
//! they were: who takes a frame zeroes it, outside the lock.

use super::bitmap::Bitmap;
use super::grace::{Epoch, Grace};
use crate::base::addr::Frame;
use crate::base::cpu::Cpu;
use crate::base::lock::{Glance, Shown, rank};

/// Most frames in a run: 4 MiB. What is longer does not exist, so that taking a run is bounded.
pub const RUN_MAX: u32 = 1024;
/// Runs of free frames looked at in one step of a search.
const SEARCH_STEP: u32 = 128;

/// A frame's word, unless it is the number of the next frame of its batch.
mod state {
    /// Not RAM, or not ours to give.
    pub const RESERVED: u32 = u32::MAX;
    /// In use.
    pub const TAKEN: u32 = u32::MAX - 1;
    /// Free.
    pub const FREE: u32 = u32::MAX - 2;
    /// Waits, as the last of its batch.
    pub const LAST: u32 = u32::MAX - 3;
}

/// Frames of RAM given to the allocator, and how many of them are in which state; the rest is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// All.
    pub total: u32,
    /// Free.
    pub free: u32,
    /// Freed, waiting for a grace period.
    pub waiting: u32,
}

/// Where a search for a run goes on. A search that begins anew begins with the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Search(u32);

impl Search {
    /// As a number, to be kept while the caller restarts.
    #[must_use]
    pub const fn raw(self) -> u32 {
        self.0
    }
    /// From the number that [`Search::raw`] gave.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }
}

/// What one step of a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// The first frame of a run, which is now in use.
    Found(Frame),
    /// Nothing yet: call again with the same search.
    Again,
    /// There is none. Frames freed behind the search while it ran were not seen.
    None,
}

/// Frames that wait for the same epoch.
#[derive(Debug)]
struct Batch {
    first: u32,
    oldest: Epoch,
    newest: Epoch,
}

struct Inner {
    words: &'static mut [u32],
    free: Bitmap,
    usage: Usage,
    open: Option<Batch>,
    closed: Option<Batch>,
}

/// The frame allocator.
pub struct Frames(Shown<Inner, { rank::FRAMES }>);

impl Glance for Inner {
    /// Frames that wait.
    fn glance(&self) -> u32 {
        self.usage.waiting
    }
}

impl Frames {
    /// Words of 64 bits that [`Frames::new`] needs, besides one of 32 bits a frame.
    #[must_use]
    pub const fn bits_needed(frames: u32) -> usize {
        Bitmap::words(frames)
    }

    /// An allocator of the frames below `words.len()`, none of which it may give yet; what the slices hold is lost.
    ///
    /// # Panics
    /// If `bits` is shorter than [`Frames::bits_needed`], or `words` longer than 2^32 - 4 (16 TiB): a mistake of the boot code.
    #[must_use]
    pub fn new(words: &'static mut [u32], bits: &'static mut [u64]) -> Self {
        assert!(
            words.len() <= state::LAST as usize,
            "more frames than words can name"
        );
        words.fill(state::RESERVED);
        let free = Bitmap::new(bits, words.len() as u32);
        Self(Shown::new(Inner {
            words,
            free,
            usage: Usage::default(),
            open: None,
            closed: None,
        }))
    }

    /// Gives the allocator `frames` frames of RAM from `first` on. Those it has already, and those past its end, are left out: memory
    /// maps of firmware overlap. Takes time by the frame, so it is for boot.
    pub fn add(&self, cpu: &Cpu, first: Frame, frames: u32) {
        let mut inner = self.0.lock(cpu);
        let end = first.0.saturating_add(frames).min(inner.words.len() as u32);
        for number in first.0..end {
            if inner.words[number as usize] == state::RESERVED {
                inner.usage.total += 1;
                inner.put(number);
            }
        }
    }

    /// Takes a free frame; `None` if there is none.
    pub fn allocate(&self, cpu: &Cpu) -> Option<Frame> {
        let mut inner = self.0.lock(cpu);
        let number = inner.free.next(0)?;
        inner.take(number);
        Some(Frame(number))
    }

    /// Looks for `frames` free frames in a row and takes the lowest such run. Each step is bounded; the caller repeats it, with
    /// the same search, while it says [`Run::Again`]. No run is empty or longer than [`RUN_MAX`].
    pub fn allocate_run(&self, cpu: &Cpu, frames: u32, search: &mut Search) -> Run {
        if frames == 0 || frames > RUN_MAX {
            return Run::None;
        }
        let mut inner = self.0.lock(cpu);
        for _ in 0..SEARCH_STEP {
            let Some(first) = inner.free.next(search.0) else {
                return Run::None;
            };
            let found = inner.free.run(first, frames);
            if found == frames {
                (first..first + frames).for_each(|number| inner.take(number));
                return Run::Found(Frame(first));
            }
            search.0 = first + found;
        }
        Run::Again
    }

    /// Frees a frame that no other CPU, and no interrupt, can have in reach.
    ///
    /// # Panics
    /// If the frame is not in use: freed twice, or never given.
    pub fn free(&self, cpu: &Cpu, frame: Frame) {
        let mut inner = self.0.lock(cpu);
        inner.assert_taken(frame);
        inner.put(frame.0);
    }

    /// Frees a frame once `epoch` has passed: what [`Grace::retire_epoch`] said after the frame was unlinked.
    ///
    /// # Panics
    /// If the frame is not in use: freed twice, or never given.
    pub fn retire(&self, cpu: &Cpu, frame: Frame, epoch: Epoch) {
        let mut inner = self.0.lock(cpu);
        inner.assert_taken(frame);
        inner.usage.waiting += 1;
        // A later epoch begins a new batch, if the one before can be closed.
        if inner.closed.is_none() && inner.open.as_ref().is_some_and(|open| epoch > open.newest) {
            inner.closed = inner.open.take();
        }
        let (next, oldest, newest) = match &inner.open {
            Some(open) => (open.first, open.oldest.min(epoch), open.newest.max(epoch)),
            None => (state::LAST, epoch, epoch),
        };
        inner.words[frame.0 as usize] = next;
        inner.open = Some(Batch {
            first: frame.0,
            oldest,
            newest,
        });
    }

    /// Makes up to `budget` frames free whose epoch has passed, and says how many: if it is all of the budget, there may be
    /// more. While frames wait, it also ends the epoch they wait for; so it need only be called now and then.
    pub fn reclaim(&self, cpu: &Cpu, grace: &Grace, budget: u32) -> u32 {
        if self.0.glance() == 0 {
            return 0;
        }
        self.0.lock(cpu).reclaim(grace, budget)
    }

    /// The same where nobody is at the frames just now: for the tick, which does it again soon. If ticks waited, all CPUs would queue up
    /// here while a process ends, with interrupts off, each for as long as those before it; and longer than to their next tick where
    /// they are an emulator's threads, of which few run at a time.
    pub fn try_reclaim(&self, cpu: &Cpu, grace: &Grace, budget: u32) {
        if self.0.glance() == 0 {
            return;
        }
        if let Some(mut inner) = self.0.try_lock(cpu) {
            inner.reclaim(grace, budget);
        }
    }

    /// Whether everything that was retired in `epoch` or before is free again.
    pub fn reclaimed(&self, cpu: &Cpu, epoch: Epoch) -> bool {
        let inner = self.0.lock(cpu);
        [&inner.open, &inner.closed]
            .into_iter()
            .flatten()
            .all(|batch| batch.oldest > epoch)
    }

    /// Keeps everybody else from the frames, for tests.
    #[cfg(test)]
    pub fn hold<'a>(&'a self, cpu: &'a Cpu) -> impl Drop + 'a {
        self.0.lock(cpu)
    }

    /// Whether a frame is free, for tests.
    #[cfg(test)]
    pub fn is_free(&self, cpu: &Cpu, frame: Frame) -> bool {
        self.0.lock(cpu).words[frame.0 as usize] == state::FREE
    }

    /// How many frames are in which state.
    pub fn usage(&self, cpu: &Cpu) -> Usage {
        self.0.lock(cpu).usage
    }
}

impl Inner {
    /// See [`Frames::reclaim`].
    fn reclaim(&mut self, grace: &Grace, budget: u32) -> u32 {
        let mut done = 0;
        while done < budget {
            let Some(batch) = self.closed.take().or_else(|| self.open.take()) else {
                break;
            };
            if !grace.passed(batch.newest) {
                grace.advance(batch.newest);
                self.closed = Some(batch);
                break;
            }
            let mut number = batch.first;
            while number != state::LAST && done < budget {
                let next = self.words[number as usize];
                self.usage.waiting -= 1;
                self.put(number);
                number = next;
                done += 1;
            }
            if number != state::LAST {
                self.closed = Some(Batch {
                    first: number,
                    ..batch
                });
            }
        }
        done
    }
    /// From free to in use.
    fn take(&mut self, number: u32) {
        self.free.remove(number);
        self.words[number as usize] = state::TAKEN;
        self.usage.free -= 1;
    }
    /// From any other state to free.
    fn put(&mut self, number: u32) {
        self.words[number as usize] = state::FREE;
        self.free.insert(number);
        self.usage.free += 1;
    }
    fn assert_taken(&self, frame: Frame) {
        let word = self.words.get(frame.0 as usize);
        assert!(
            word == Some(&state::TAKEN),
            "{frame:?} freed, but not in use"
        );
    }
}

#[cfg(test)]
mod tests;
