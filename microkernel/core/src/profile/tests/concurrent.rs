//! A client that wakes, runs and waits again on a host thread of its own while its part is read: registers, stack and page tables change
//! at every moment. A part that is kept is one that was there, whole, while the client waited.

use crate::base::addr::{Frame, Tsc};
use crate::base::cpu::CpuId;
use crate::base::regs::{Reg, SavedRegs};
use crate::hardware::{PhysMemory, PhysWords};
use crate::mem::fake::{FIRST, FakeMemory};
use crate::pmu::NoMonitor;
use crate::profile::clients::{client_parts, usual_parts};
use crate::profile::findings::Findings;
use crate::profile::layout::Span;
use crate::profile::{KernelWords, Machine, Names, ThreadView, Threads};
use ipc::abi::profile::{FIXED_WORDS, Header, KIND_SAMPLE, LAYOUT_VERSION, flags};
use proptest::prelude::ProptestConfig;
use sample_ring::{AtomicU64, Geometry, Reader, Writer};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64 as Word, Ordering, fence};
use std::time::{Duration, Instant};

/// The tables of the client's space, and the frames that its stack is in by turns.
const TABLES: [Frame; 4] = [
    Frame(FIRST),
    Frame(FIRST + 1),
    Frame(FIRST + 2),
    Frame(FIRST + 3),
];
const STACKS: [Frame; 2] = [Frame(FIRST + 4), Frame(FIRST + 5)];
const ALL: u64 = 5;
/// Where the stack is.
const STACK: u64 = 0x7000;
/// Most callers.
const DEPTH: u64 = 6;
/// How long it is tried for each case of a property test: for two seconds, unless `PROPTEST_CASES` asks for more.
const TIME: Duration = Duration::from_millis(8);
/// How long the first part may take to be kept.
const PATIENCE: Duration = Duration::from_secs(120);

/// Memory, and no kernel stack.
struct Memory(FakeMemory);

#[derive(Clone, Copy)]
enum NoStack {}

impl KernelWords for NoStack {
    fn span(self) -> Span {
        match self {}
    }
    fn word(self, _: u64) -> Option<u64> {
        match self {}
    }
}

impl PhysWords for Memory {
    type Words<'a> = &'a [Word; 512];

    fn words(&self, frame: Frame) -> Option<&[Word; 512]> {
        self.0.words(frame)
    }
}

impl Machine for Memory {
    type KernelWords<'a> = NoStack;
    type Monitor = NoMonitor;

    fn tsc(&self) -> Tsc {
        Tsc(0)
    }
    fn kernel_stack(&self, _: CpuId, _: u64) -> Option<NoStack> {
        None
    }
    fn space(&self) -> Frame {
        TABLES[0]
    }
    fn monitor(&self) -> &NoMonitor {
        &NoMonitor
    }
}

/// Thread 0 serves thread 1.
struct Pair {
    /// Of the client: its number, which is even while it waits; and that by which it is served, 0 while it is not.
    sequence: Word,
    serving: Word,
    regs: SavedRegs,
    ids: Word,
    image: AtomicU32,
}

impl Threads for &Pair {
    type Thread = usize;

    fn current(&self) -> Option<usize> {
        Some(0)
    }
    fn names(&self, _: usize) -> Names<'_> {
        Names {
            ids: &self.ids,
            image: &self.image,
        }
    }
    fn view(&self, thread: usize) -> Option<ThreadView<'_>> {
        Some(ThreadView {
            names: self.names(thread),
            root: TABLES[0],
            regs: &self.regs,
        })
    }
    fn served(&self, thread: usize) -> Option<(usize, u64)> {
        let sequence = self.serving.load(Ordering::Acquire);
        (thread == 0 && sequence != 0).then_some((1, sequence))
    }
    fn sequence(&self, _: usize) -> u64 {
        self.sequence.load(Ordering::Relaxed)
    }
}

/// The chain in the `n`th call.
fn truth(n: u64) -> Vec<u64> {
    (0..=n % (DEPTH + 1))
        .map(|depth| n * 0x100 + depth)
        .collect()
}

/// Puts the client's chain of the `n`th call where it belongs, in another frame each time; the last one is somebody else's. Two of three end
/// as programs do, with a frame that returns to 0.
fn lay_out(memory: &Memory, regs: &SavedRegs, n: u64) {
    let [stack, last] = if n.is_multiple_of(2) {
        STACKS
    } else {
        [STACKS[1], STACKS[0]]
    };
    let chain = truth(n);
    let mut callers = chain[1..].to_vec();
    if !n.is_multiple_of(3) {
        callers.push(0);
    }
    let at = |depth: usize| STACK + depth as u64 * 32;
    let frame = |depth| if depth < callers.len() { at(depth) } else { 0 };
    regs.set(Reg::Rip, chain[0]);
    regs.set(Reg::Rsp, STACK);
    regs.set(Reg::Rbp, frame(0));
    for (depth, &address) in callers.iter().enumerate() {
        let place = stack.start().offset(at(depth) - STACK);
        memory.0.write(place, frame(depth + 1));
        memory.0.write(place.offset(8), address);
    }
    let entry = TABLES[3].start().offset((STACK >> 12) * 8);
    memory.0.write(entry, stack.start().0 | ALL);
    memory.0.spoil(last);
}

/// Calls, waits a little, goes on, and calls again.
fn client(memory: &Memory, pair: &Pair, over: &AtomicBool) {
    for n in 1.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        lay_out(memory, &pair.regs, n);
        pair.sequence.store(2 * n, Ordering::Release);
        pair.serving.store(2 * n, Ordering::Release);
        for _ in 0..n % 300 {
            std::hint::spin_loop();
        }
        // As the kernel wakes a thread; its server's link is cleared by the server, which may be late.
        pair.sequence.store(2 * n + 1, Ordering::Relaxed);
        fence(Ordering::Release);
    }
}

/// Stops the client, also if the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_part_that_is_kept_was_there_while_the_client_waited() {
    let memory = Memory(FakeMemory::new(6));
    for pair in TABLES.windows(2) {
        memory.0.zero(pair[0]);
        memory.0.write(pair[0].start(), pair[1].start().0 | ALL);
    }
    memory.0.zero(TABLES[3]);
    let pair = Pair {
        sequence: Word::new(1),
        serving: Word::new(0),
        regs: SavedRegs::new(),
        ids: Word::new(1 << 32 | 1),
        image: AtomicU32::new(0),
    };
    let ring = Geometry::new(16, 1).unwrap();
    let words: Vec<_> = (0..ring.words()).map(|_| AtomicU64::new(0)).collect();
    let writer = Writer::format(&words, ring).unwrap();
    let mut reader = Reader::open(words[..].into(), ring).unwrap();
    let (over, start, mut kept) = (AtomicBool::new(false), Instant::now(), 0);
    let time = TIME * ProptestConfig::default().cases;
    std::thread::scope(|scope| {
        let stop = Stop(&over);
        scope.spawn(|| client(&memory, &pair, &over));
        while kept == 0 || start.elapsed() < time {
            assert!(start.elapsed() < time + PATIENCE, "no part is kept");
            let (mut slot, mut findings) = (writer.begin(), Findings::of(0));
            // The rest of the record, and a frame of the server's.
            assert!(slot.extend([1; FIXED_WORDS - 2 + 1]));
            let used = slot.used();
            if !usual_parts(&mut slot, &memory, &pair, 0) {
                slot.rewind(used);
                client_parts(&mut slot, &mut findings, &memory, &pair, 0);
            }
            let header = Header {
                version: LAYOUT_VERSION,
                kind: KIND_SAMPLE,
                tagged: (slot.used() - FIXED_WORDS) as u8,
                ..Header::default()
            };
            slot.publish(header.pack());
            let sample = reader.drain().unwrap().next().unwrap().unwrap();
            let Some(part) = sample.parts().nth(1) else {
                continue;
            };
            assert_eq!(findings.flags & flags::CHANGED, 0);
            assert_eq!(part.frames, truth(part.frames[0] / 0x100));
            assert_eq!(findings, Findings::of(0), "it is whole");
            kept += 1;
        }
        drop(stop);
    });
}
