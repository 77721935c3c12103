//! A machine and its threads. The machine fails the test when it is asked for anything outside its RAM, and memory can be
//! made to change after any number of reads.

use crate::base::addr::{Frame, PhysAddr, Tsc};
use crate::base::cpu::CpuId;
use crate::base::regs::{Reg, SavedRegs};
use crate::hardware::{PhysWords, Words};
use crate::mem::entry::Entry;
use crate::pmu::fake::thread::{ThreadMonitor, pause};
use crate::profile::{KernelWords, Machine, Names, Span, ThreadView, Threads};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

pub const PRESENT: u64 = 1;
pub const USER: u64 = 4;
pub const LARGE: u64 = 0x80;
pub const ALL: u64 = PRESENT | USER;

/// This CPU's one kernel stack.
pub const STACK: Span = Span {
    start: 0xffff_8000_0001_0000,
    end: 0xffff_8000_0001_1000,
};

#[derive(Default)]
pub struct Fake {
    /// Frames of RAM, and their words that are not zero, by address.
    words: BTreeMap<u64, u64>,
    ram: BTreeSet<u32>,
    pub kernel: BTreeMap<u64, u64>,
    pub reads: AtomicU64,
    /// Root of the tables that are on.
    space: AtomicU32,
    /// A bit for each CPU that its own source was asked to send an NMI.
    pub asked: AtomicU64,
    tsc: AtomicU64,
    /// From this read on, every word is turned into another.
    pub spoilt_after: Option<u64>,
}

impl Fake {
    pub fn new() -> Self {
        Self::default()
    }
    /// A frame of RAM: the lowest that is not used, from `first` on.
    pub fn frame(&mut self, first: u32) -> Frame {
        let mut frame = first;
        while self.ram.contains(&frame) {
            frame += 1;
        }
        self.ram.insert(frame);
        Frame(frame)
    }
    pub fn set(&mut self, at: u64, word: u64) {
        assert!(self.ram.contains(&((at >> 12) as u32)));
        self.words.insert(at, word);
    }
    /// Maps a page of this size in the tables under `root`, to a physical address that need not be RAM.
    pub fn map(&mut self, root: Frame, at: u64, bytes: u64, to: u64, bits: u64) {
        let mut table = root.start().0;
        for shift in [39, 30, 21, 12] {
            let slot = table + (at >> shift & 0x1ff) * 8;
            if 1u64 << shift == bytes {
                let large = if shift == 12 { 0 } else { LARGE };
                self.set(slot, to | bits | large);
                return;
            }
            table = match self.words.get(&slot) {
                Some(entry) => entry & 0x000f_ffff_ffff_f000,
                None => {
                    let next = self.frame(0x1000).start().0;
                    self.set(slot, next | ALL);
                    next
                }
            };
        }
        panic!("no such page size");
    }
    /// Where a mapped address is, for 4 KiB pages.
    fn physical(&self, root: Frame, at: u64) -> Option<u64> {
        let mut table = root.start().0;
        for shift in [39, 30, 21, 12] {
            let entry = self.words.get(&(table + (at >> shift & 0x1ff) * 8))?;
            table = entry & 0x000f_ffff_ffff_f000;
        }
        Some(table + (at & 0xfff))
    }
    /// Writes a word of a program, on a page of its own frame, which is mapped if it is not.
    pub fn poke(&mut self, root: Frame, at: u64, word: u64) {
        if self.physical(root, at).is_none() {
            let frame = self.frame(0x8000);
            self.map(root, at & !0xfff, 4096, frame.start().0, ALL);
        }
        let place = self.physical(root, at).unwrap();
        self.set(place, word);
    }
    /// Lays out frames from the innermost outwards: frame `n` is at `at[n]` and returns to `to[n]`; the last has RBP 0.
    pub fn frames(&mut self, root: Frame, at: &[u64], to: &[u64]) {
        for (n, (&frame, &address)) in at.iter().zip(to).enumerate() {
            self.poke(root, frame, at.get(n + 1).copied().unwrap_or(0));
            self.poke(root, frame + 8, address);
        }
    }
    /// The same on the kernel stack; the outermost frame saved `outer` as its caller's RBP.
    pub fn kernel_frames(&mut self, at: &[u64], to: &[u64], outer: u64) {
        for (n, (&frame, &address)) in at.iter().zip(to).enumerate() {
            let next = at.get(n + 1).copied().unwrap_or(outer);
            self.kernel.insert(frame, next);
            self.kernel.insert(frame + 8, address);
        }
    }
    pub fn count(&self) -> u64 {
        self.reads.load(Relaxed)
    }
    /// A word of its RAM.
    pub fn read(&self, at: PhysAddr) -> u64 {
        assert!(at.0.is_multiple_of(8), "misaligned read");
        assert!(self.ram.contains(&((at.0 >> 12) as u32)), "not RAM");
        let reads = self.reads.fetch_add(1, Relaxed);
        let word = self.words.get(&at.0).copied().unwrap_or(0);
        match self.spoilt_after {
            Some(after) if reads >= after => word ^ 0x5555 << (reads % 40),
            _ => word,
        }
    }
}

/// A frame of it.
#[derive(Clone, Copy)]
pub struct FakeWords<'f> {
    fake: &'f Fake,
    frame: Frame,
}

impl Words for FakeWords<'_> {
    fn word(self, index: usize) -> u64 {
        self.fake
            .read(self.frame.start().offset(index as u64 % 512 * 8))
    }
}

impl PhysWords for Fake {
    type Words<'f> = FakeWords<'f>;

    fn words(&self, frame: Frame) -> Option<FakeWords<'_>> {
        let words = FakeWords { fake: self, frame };
        self.ram.contains(&frame.0).then_some(words)
    }
    // Its RAM is in many ranges: a seventh of it is not in the largest.
    fn user_words(&self, tagged: u64) -> Option<FakeWords<'_>> {
        let number = tagged.wrapping_sub(Entry::TO_USER).rotate_right(12);
        if number % 7 == 6 {
            return None;
        }
        self.words(Frame(u32::try_from(number).ok()?))
    }
}

/// The one kernel stack.
#[derive(Clone, Copy)]
pub struct FakeStack<'f>(pub &'f Fake);

impl KernelWords for FakeStack<'_> {
    fn span(self) -> Span {
        STACK
    }
    fn word(self, at: u64) -> Option<u64> {
        if !at.is_multiple_of(8) || !STACK.holds(at, 8) {
            return None;
        }
        self.0.reads.fetch_add(1, Relaxed);
        Some(self.0.kernel.get(&at).copied().unwrap_or(0))
    }
}

impl Machine for Fake {
    type KernelWords<'f> = FakeStack<'f>;
    type Monitor = ThreadMonitor;

    fn tsc(&self) -> Tsc {
        Tsc(self.tsc.fetch_add(1, Relaxed) + 1)
    }
    fn kernel_stack(&self, _: CpuId, rsp: u64) -> Option<FakeStack<'_>> {
        STACK.holds(rsp, 0).then_some(FakeStack(self))
    }
    fn space(&self) -> Frame {
        Frame(self.space.load(Relaxed))
    }
    fn next_sample(&self, cpu: CpuId) -> u64 {
        self.asked.fetch_or(cpu.bit(), Relaxed);
        0
    }
    fn monitor(&self) -> &ThreadMonitor {
        // Whatever came before, it may be interrupted behind that.
        pause();
        &ThreadMonitor
    }
}

/// A thread: pid, tid and image are made from its index.
pub struct FakeThread {
    ids: AtomicU64,
    image: AtomicU32,
    pub root: Frame,
    pub regs: SavedRegs,
    pub serves: Option<usize>,
}

impl FakeThread {
    pub fn new(root: Frame, [rip, rsp, rbp]: [u64; 3]) -> Self {
        let regs = SavedRegs::new();
        regs.set(Reg::Rip, rip);
        regs.set(Reg::Rsp, rsp);
        regs.set(Reg::Rbp, rbp);
        Self {
            ids: AtomicU64::new(0),
            image: AtomicU32::new(0),
            root,
            regs,
            serves: None,
        }
    }
}

pub struct FakeThreads<'m> {
    pub machine: &'m Fake,
    pub all: Vec<FakeThread>,
    pub current: Option<usize>,
    /// This thread is woken once the machine has been read so often: from there on its sequence is another.
    pub wakes: Option<(usize, u64)>,
    /// And it serves this one.
    pub then_serves: Option<usize>,
}

impl<'m> FakeThreads<'m> {
    pub fn new(machine: &'m Fake, all: Vec<FakeThread>) -> Self {
        let current = if all.is_empty() { None } else { Some(0) };
        let space = all.first().map_or(0, |thread| thread.root.0);
        machine.space.store(space, Relaxed);
        for (number, thread) in (0..).zip(&all) {
            let (pid, tid) = (10 + number, 20 + number);
            thread.ids.store(pid | tid << 32, Relaxed);
            thread.image.store(30 + number as u32, Relaxed);
        }
        Self {
            machine,
            all,
            current,
            wakes: None,
            then_serves: None,
        }
    }
    /// Each thread serves the next.
    pub fn chained(mut self) -> Self {
        let last = self.all.len().saturating_sub(1);
        for (index, thread) in self.all.iter_mut().enumerate().take(last) {
            thread.serves = Some(index + 1);
        }
        self
    }
}

impl Threads for &FakeThreads<'_> {
    type Thread = usize;

    fn current(&self) -> Option<usize> {
        self.current
    }
    fn names(&self, thread: usize) -> Names<'_> {
        let FakeThread { ids, image, .. } = &self.all[thread];
        Names { ids, image }
    }
    fn view(&self, thread: usize) -> Option<ThreadView<'_>> {
        let it = self.all.get(thread)?;
        Some(ThreadView {
            names: self.names(thread),
            root: it.root,
            regs: &it.regs,
        })
    }
    fn served(&self, thread: usize) -> Option<(usize, u64)> {
        self.machine.reads.fetch_add(1, Relaxed);
        let serves = self.all.get(thread)?.serves;
        let client = match self.wakes {
            Some((sleeper, at)) if sleeper == thread && self.machine.count() >= at => {
                self.then_serves.or(serves)?
            }
            _ => serves?,
        };
        // A client that woke is no longer served.
        let sequence = self.sequence(client);
        (sequence == 0).then_some((client, sequence))
    }
    fn sequence(&self, thread: usize) -> u64 {
        self.machine.reads.fetch_add(1, Relaxed);
        match self.wakes {
            Some((sleeper, at)) if sleeper == thread && self.machine.count() >= at => 1,
            _ => 0,
        }
    }
}
