//! The profiling driver's side of the contract: what a program asks it for, what it answers, and the sample record.
//!
//! # Record
//! A record is a slot of [`SLOT_WORDS`] words in a CPU's ring, of which only the used part is written:
//!
//! | word | meaning |
//! |---|---|
//! | 0 | sequence: number of the record on this CPU, from 1; written last |
//! | 1 | [`Header`]: layout version, kind, CPU, flags, event, counts |
//! | 2 | TSC |
//! | 3 | pid, and tid in the upper half |
//! | 4 | image, and weight in the upper half |
//! | 5 | RSP as interrupted |
//! | 6 | RBP as interrupted |
//! | 7.. | `stack` words from the top of the interrupted stack, lowest address first; then `counters` counter values; then `tagged` tagged words |
//!
//! Tagged words are frames (canonical addresses; the first one is the interrupted RIP, which is any that [`Marker::frame`] gives) and
//! markers ([`Marker`], two words each) that begin the frames of another process.

use super::numbered::numbered;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Words in a slot: 512 bytes.
pub const SLOT_WORDS: usize = 64;
/// Fixed words before the variable part.
pub const FIXED_WORDS: usize = 7;
/// Most words kept from the top of the interrupted stack.
pub const STACK_WORDS: usize = 8;
/// Most frames of the interrupted thread, kernel and user together.
pub const FIRST_FRAMES: usize = 16;
/// Frames kept at least for each further address space, if it has them.
pub const CLIENT_FRAMES: usize = 4;
/// Version of this layout.
pub const LAYOUT_VERSION: u8 = 2;
/// Kind of a record: a sample.
pub const KIND_SAMPLE: u8 = 1;
/// Records in one CPU's ring.
pub const RING_RECORDS: usize = 1024;

/// Facts about a sample, as bits of its header.
pub mod flags {
    /// The interrupted code was in the kernel.
    pub const KERNEL: u16 = 1 << 0;
    /// Interrupts were off.
    pub const INTERRUPTS_OFF: u16 = 1 << 1;
    /// The CPU was idle.
    pub const IDLE: u16 = 1 << 2;
    /// The chain has more frames than were kept.
    pub const TRUNCATED: u16 = 1 << 3;
    /// The walk ended at a frame it could not read or believe.
    pub const CUT: u16 = 1 << 4;
    /// A client's frames changed while they were read, and were left out.
    pub const CHANGED: u16 = 1 << 5;

    /// Parts that a chain can have.
    pub const PARTS: usize = 10;

    /// A part of the chain is truncated or cut. Part 0 are the kernel's frames, part 1 those of the thread's program, the
    /// others those of its clients; the one behind the last that the record holds is missing whole. None for parts
    /// that no chain has.
    #[must_use]
    pub const fn incomplete(part: usize) -> u16 {
        if part < PARTS { 1 << (6 + part) } else { 0 }
    }
}

/// Word 1 of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Header {
    /// Layout version.
    pub version: u8,
    /// Record kind.
    pub kind: u8,
    /// CPU, as numbered by the kernel.
    pub cpu: u8,
    /// Event that took the sample: index into the specifications given to start.
    pub event: u8,
    /// See [`flags`].
    pub flags: u16,
    /// Stack words.
    pub stack: u8,
    /// Counter values; none yet.
    pub counters: u8,
    /// Tagged words.
    pub tagged: u8,
}

impl Header {
    /// As one word.
    #[must_use]
    pub const fn pack(self) -> u64 {
        self.version as u64
            | (self.kind as u64) << 8
            | (self.cpu as u64) << 16
            | (self.event as u64) << 24
            | (self.flags as u64) << 32
            | ((self.stack & 0xf) as u64) << 48
            | ((self.counters & 0xf) as u64) << 52
            | (self.tagged as u64) << 56
    }
    /// From its word.
    #[must_use]
    pub const fn unpack(word: u64) -> Self {
        Self {
            version: word as u8,
            kind: (word >> 8) as u8,
            cpu: (word >> 16) as u8,
            event: (word >> 24) as u8,
            flags: (word >> 32) as u16,
            stack: (word >> 48) as u8 & 0xf,
            counters: (word >> 52) as u8 & 0xf,
            tagged: (word >> 56) as u8,
        }
    }
    /// Words of the whole record.
    #[must_use]
    pub const fn words(self) -> usize {
        FIXED_WORDS + self.stack as usize + self.counters as usize + self.tagged as usize
    }
}

/// Begins the frames of another process in the tagged words: two words, the first of which is no canonical address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Process whose frames follow.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// Its image.
    pub image: u32,
}

impl Marker {
    const TAG: u64 = 0x4d41 << 48;

    /// The two words.
    #[must_use]
    pub const fn pack(self) -> [u64; 2] {
        [
            Self::TAG | self.pid as u64,
            self.tid as u64 | (self.image as u64) << 32,
        ]
    }
    /// Whether a tagged word is the first of a marker.
    #[must_use]
    pub const fn starts(word: u64) -> bool {
        word & (0xffff << 48) == Self::TAG
    }
    /// The tagged word of a frame at any address. A program can jump to one that would begin a marker: that one gets its top bit set.
    #[must_use]
    pub const fn frame(address: u64) -> u64 {
        if Self::starts(address) {
            address | 1 << 63
        } else {
            address
        }
    }
    /// From its two words.
    #[must_use]
    pub const fn unpack(words: [u64; 2]) -> Self {
        Self {
            pid: words[0] as u32,
            tid: words[1] as u32,
            image: (words[1] >> 32) as u32,
        }
    }
}

numbered! {
    /// Where samples come from.
    pub enum Source: u64, name {
        /// The per-CPU timer tick.
        Tick = 1 => "tick",
        /// An NMI from a timer or a neighbour.
        TimerNmi = 2 => "timer/nmi",
        /// Intel fixed counter 1.
        PmuIntel = 3 => "pmu/nmi intel fixed-ctr1",
        /// AMD core counter 0.
        PmuAmd = 4 => "pmu/nmi amd ctr0",
        /// AMD core counter 0 with PerfMonV2.
        PmuAmdV2 = 5 => "pmu/nmi amd ctr0 v2",
    }
}

numbered! {
    /// Which source the caller wants.
    #[derive(Default)]
    pub enum SourceRequest: u64, name {
        /// The best that works.
        #[default]
        Best = 0 => "best",
        /// A performance counter.
        Pmu = 1 => "pmu",
        /// `timer/nmi`.
        Timer = 2 => "timer",
        /// The tick.
        Tick = 3 => "tick",
    }
}

/// An event to sample. `profiler_start` reads a list of these from the caller's IPC buffer; today exactly one is
/// accepted, and its `event` must be [`EVENT_CYCLES`].
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct EventSpec {
    /// Kind of event.
    pub event: u64,
    /// Raw event code, for kinds that take one.
    pub raw: u64,
    /// Samples per second on each CPU; 0 asks for the source's own rate.
    pub frequency: u64,
    /// 1: user code, 2: kernel code, 3: both.
    pub domains: u64,
}

/// Unhalted core cycles, or time where the source has only that.
pub const EVENT_CYCLES: u64 = 0;
/// Both domains of an [`EventSpec`].
pub const DOMAINS_ALL: u64 = 3;

numbered! {
    /// What the driver is doing.
    pub enum Phase: u64 {
        /// Nothing armed.
        Idle = 0,
        /// Start was asked; some CPU has not armed yet.
        Arming = 1,
        /// Every CPU samples: the window is open.
        Open = 2,
        /// Stop was asked; some CPU has not disarmed yet.
        Disarming = 3,
    }
}

/// What `profiler_status` writes to the caller's IPC buffer; counts are since boot, so a reader takes differences.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ProfilerStatus {
    /// [`Phase`].
    pub phase: u64,
    /// [`Source`] in use, or used last; 0 before the first run.
    pub source: u64,
    /// Bit per CPU that has not yet done what the phase waits for.
    pub stragglers: u64,
    /// TSC at which the window opened, when the last CPU had armed; 0 before that. Kept until the next start. There was a
    /// window only if this is not 0 and below `closed`: a stop may have come before all CPUs had armed.
    pub opened: u64,
    /// TSC at which stop was asked; 0 before that. Kept until the next start.
    pub closed: u64,
    /// Nominal samples per second on each CPU, in that run.
    pub frequency: u64,
    /// CPUs with a ring.
    pub cpus: u64,
    /// Bit per CPU that is sampled by its own performance counter in that run; the others of such a run are sampled as with
    /// [`Source::TimerNmi`].
    pub counting: u64,
    /// [`Source`] that a start takes which asks for the best.
    pub best: u64,
    /// Sums over all CPUs.
    pub counters: SampleCounters,
}

/// Everything taken, and everything lost or odd, by name. One per CPU in `profiler_cpu`, summed in the status.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct SampleCounters {
    /// Samples taken, counted apart from the ring.
    pub taken: u64,
    /// Samples that were due and not taken, because the machine did not get to run then.
    pub missed: u64,
    /// Chains longer than what is kept.
    pub truncated: u64,
    /// Chains that ended at a frame that could not be believed.
    pub cut: u64,
    /// Frames whose stack was not mapped.
    pub unmapped: u64,
    /// Client parts that changed under the walk.
    pub changed: u64,
    /// NMIs that came after their source was disarmed.
    pub late: u64,
    /// Samples left out, or put off, because a CPU had time for nothing else.
    pub throttled: u64,
    /// TSC ticks spent taking samples.
    pub cost: u64,
    /// Samples that CPUs asked of their neighbours, those among them that had not handled the last one yet.
    pub asked: u64,
    /// Nanoseconds by which those were asked for later than due, because the CPU that asks had its interrupts off or did not get to
    /// run.
    pub delay: u64,
    /// The longest of these delays, on any CPU, in the run that is on or was last.
    pub delay_max: u64,
}
