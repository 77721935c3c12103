//! A folded profile: everything a report says, with names instead of addresses, and nothing about how it is printed.
//!
//! It stands by itself. [`crate::encode`] and [`crate::decode`] carry it as bytes; [`crate::report`] and
//! [`crate::stacks`] are two ways to write it as text.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use ipc::abi::profile::Source;

use crate::account::{Balance, Payer};
use crate::cpus::ByCpu;
use crate::process::Fate;

/// What was measured, and how much of it there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Window that was asked for, in milliseconds.
    pub asked_ms: u32,
    /// How long it was open, in milliseconds; less if it was stopped.
    pub profiled_ms: u32,
    /// Where the samples came from.
    pub source: Source,
    /// Nominal samples per second on each CPU.
    pub frequency: u64,
    /// Frames to which chains were folded, the leaf included.
    pub depth: u8,
    /// The process that was asked for; `None`: all.
    pub filter: Option<Filter>,
    /// CPUs that contributed a reported sample.
    pub cpus: u32,
    /// CPUs that were asked for samples: all of the machine.
    pub asked_cpus: u32,
    /// CPUs that are sampled by their own performance counter, where the source is one.
    pub counting: u32,
    /// Bit per CPU that did not confirm its end in time.
    pub unconfirmed: u64,
    /// What became of every sample.
    pub counts: Counts,
    /// Samples of the window that were read, of each CPU of the machine.
    pub came: ByCpu,
    /// Names; each is here once.
    pub strings: Vec<String>,
    /// On whose account the samples are, the largest first; empty if they are not told by that.
    pub accounts: Vec<Account>,
    /// Images that chains lead through.
    pub images: Vec<ImageName>,
    /// Chains, the hottest first; no two of an account are alike but in their counts.
    pub chains: Vec<Chain>,
    /// Samples by exact leaf address, for annotation.
    pub addresses: Vec<LeafAddress>,
}

impl Profile {
    /// A name; empty if there is none of that number.
    #[must_use]
    pub fn string(&self, index: u32) -> &str {
        self.strings.get(index as usize).map_or("", String::as_str)
    }

    /// Whether it is of performance counters.
    #[must_use]
    pub const fn is_counted(&self) -> bool {
        matches!(
            self.source,
            Source::PmuIntel | Source::PmuAmd | Source::PmuAmdV2
        )
    }

    /// CPUs that such a profile samples by other means.
    #[must_use]
    pub const fn without_counter(&self) -> u32 {
        if self.is_counted() {
            self.asked_cpus.saturating_sub(self.counting)
        } else {
            0
        }
    }

    /// The chains of an account, or all where none are kept; the hottest first.
    pub fn chains_of(&self, account: Option<u32>) -> impl Iterator<Item = &Chain> {
        let of = move |chain: &&Chain| chain.account == account;
        self.chains.iter().filter(of)
    }

    /// ``image`symbol``, or ``image`0xaddress`` for a place without a symbol.
    #[must_use]
    pub fn place_name(&self, frame: Frame) -> String {
        let image = self
            .images
            .get(frame.image as usize)
            .map_or("", |image| self.string(image.name));
        match frame.symbol {
            Some(symbol) => format!("{image}`{}", self.string(symbol)),
            None => format!("{image}`{:#x}", frame.offset),
        }
    }
}

/// A process to which a profile was confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Its id.
    pub pid: u32,
    /// Its name; empty if it is not known.
    pub name: String,
    /// What it was when the window had closed.
    pub fate: Fate,
}

/// What became of every sample. `taken` is counted by the kernel, apart from the rings, and equals the sum of `reported`,
/// `other_tasks`, `outside`, `overwritten` and `corrupt` if nothing went unseen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples that the kernel took.
    pub taken: u64,
    /// Samples in the report.
    pub reported: u64,
    /// Samples that another process took than the one asked for.
    pub other_tasks: u64,
    /// Samples from before the window opened or after it closed.
    pub outside: u64,
    /// Records that later ones replaced before they were read.
    pub overwritten: u64,
    /// Records that did not hold together.
    pub corrupt: u64,
    /// Reported samples in chains that the table had no room for.
    pub beyond_table: u64,
    /// Chains that the table holds.
    pub table: u64,
    /// Samples that were due and not taken.
    pub missed: u64,
    /// Samples whose chain was longer than a record.
    pub truncated: u64,
    /// Samples whose walk ended at a frame that could not be believed.
    pub cut: u64,
    /// Frames whose stack was not mapped.
    pub unmapped: u64,
    /// Clients' frames that changed under the walk.
    pub changed: u64,
    /// NMIs that came after their source was disarmed.
    pub late: u64,
    /// Samples that were not taken because they came too fast.
    pub throttled: u64,
    /// Nanoseconds spent in taking samples.
    pub cost_ns: u64,
    /// Samples that CPUs asked of their neighbours.
    pub asked: u64,
    /// Nanoseconds by which those were asked for later than due.
    pub delay_ns: u64,
    /// The longest of these delays.
    pub delay_max_ns: u64,
}

impl Counts {
    /// Samples that were taken and could not be read.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.overwritten.saturating_add(self.corrupt)
    }

    /// Samples that are known to be of the window. Whether those that were dropped are, nobody knows: their times are lost with them.
    #[must_use]
    pub const fn in_window(&self) -> u64 {
        self.reported.saturating_add(self.other_tasks)
    }

    /// Samples that were taken and never seen in a ring, or the other way round.
    #[must_use]
    pub const fn unaccounted(&self) -> u64 {
        let read = self.in_window().saturating_add(self.outside);
        self.taken.abs_diff(read.saturating_add(self.dropped()))
    }
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageName {
    /// Its name: index in [`Profile::strings`].
    pub name: u32,
    /// Its build-id; empty if it has none.
    pub build_id: Vec<u8>,
    /// Why it has no symbols, if it has none: index in [`Profile::strings`].
    pub problem: Option<u32>,
}

/// A place in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// Index in [`Profile::images`].
    pub image: u32,
    /// Index in [`Profile::strings`]; `None`: the place has no symbol.
    pub symbol: Option<u32>,
    /// Bytes from the function's start; the address if there is no symbol.
    pub offset: u64,
}

/// One step from a leaf outwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A return address, in the same process or in the kernel.
    Caller(Frame),
    /// The first frame of the client that is served.
    Client(Frame),
    /// A caller that is known to be missing.
    Missing,
    /// A client whose frames are known to be missing.
    MissingClient,
}

/// What was spent on behalf of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Whose it is.
    pub payer: Payer,
    /// The name of that process; empty if it is not known.
    pub name: String,
    /// Its samples.
    pub balance: Balance,
}

/// Samples with the same chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Samples.
    pub count: u64,
    /// On whose account: index in [`Profile::accounts`]. Every chain has one, or none has.
    pub account: Option<u32>,
    /// The function they were in, at the lowest offset.
    pub leaf: Frame,
    /// The highest offset; equal to the leaf's if there is no symbol.
    pub high: u64,
    /// From the leaf outwards.
    pub steps: Vec<Step>,
    /// What the chain does not keep; `None`: it is whole.
    pub more: Option<More>,
}

/// Frames that follow a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct More {
    /// Fewest in any of its samples.
    pub least: u32,
    /// Most in any of its samples.
    pub most: u32,
    /// There are further ones, which were not counted.
    pub open: bool,
}

/// Samples at one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafAddress {
    /// Index in [`Profile::images`].
    pub image: u32,
    /// Address, as the image's file counts.
    pub address: u64,
    /// Samples.
    pub count: u64,
}
