//! A sample as a chain of places: what is folded.
//!
//! Two samples have the same chain when they were in the same function and got there by the same return addresses. A
//! sample may be at any instruction of its function, so the leaf is the function; a return address belongs to one call
//! site, so callers are exact.

use alloc::vec::Vec;

use ipc::abi::profile::flags;

use sample_ring::Sample;

use crate::account::Payer;
use crate::atlas::{Atlas, Place, Space, is_kernel};
use crate::repair::{self, Caller};
use crate::symbols::SymbolId;
use crate::unwind::Rule;

/// Where a sample was taken, as far as folding tells places apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leaf {
    /// In this function of the image.
    Function(Space, SymbolId),
    /// At an address without a symbol.
    Address(Place),
}

/// One step from the leaf outwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A return address in the same process or in the kernel.
    Caller(Place),
    /// The first frame of the client that is served.
    Client(Place),
    /// A caller that is known to be missing.
    Missing,
    /// A client whose frames are known to be missing.
    MissingClient,
}

impl Step {
    /// Whether it counts as a frame.
    #[must_use]
    pub const fn is_frame(self) -> bool {
        matches!(self, Self::Caller(_) | Self::Client(_))
    }
}

/// What tells one chain from another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Innermost.
    pub leaf: Leaf,
    /// From there outwards.
    pub steps: Vec<Step>,
    /// Whether more frames follow than the chain keeps.
    pub cut: bool,
    /// On whose account it is, where accounts are kept.
    pub payer: Option<Payer>,
}

/// What a chain does not keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beyond {
    /// Frames that were cut off.
    pub frames: u32,
    /// There are further ones that the record did not hold.
    pub open: bool,
}

/// A sample's chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// What it is folded by.
    pub key: Key,
    /// The interrupted instruction.
    pub leaf: Place,
    /// What was cut off.
    pub beyond: Beyond,
}

/// The chain of a sample, with at most `depth` frames, the leaf included.
#[must_use]
pub fn chain(sample: &Sample, depth: u8, atlas: Atlas<'_, '_>) -> Chain {
    let leaf = leaf(sample, atlas);
    let mut steps = steps(sample, atlas, leaf);
    let limit = usize::from(depth.max(1)) - 1;
    let frames = steps.iter().enumerate().filter(|(_, step)| step.is_frame());
    let end = frames
        .map(|(index, _)| index)
        .nth(limit)
        .unwrap_or(steps.len());
    let rest = &steps[end..];
    let cut_off = rest.iter().filter(|step| step.is_frame()).count();
    let open = ends_open(sample) || cut_off < rest.len();
    steps.truncate(end);
    let beyond = Beyond {
        frames: cut_off as u32,
        open,
    };
    let function = atlas.function(leaf);
    let key = Key {
        leaf: function.map_or(Leaf::Address(leaf), |(symbol, _)| {
            Leaf::Function(leaf.space, symbol)
        }),
        steps,
        cut: cut_off > 0 || open,
        payer: None,
    };
    Chain { key, leaf, beyond }
}

/// The interrupted instruction.
fn leaf(sample: &Sample, atlas: Atlas<'_, '_>) -> Place {
    let own = sample
        .parts()
        .next()
        .map(|part| (part.owner.pid, part.frames));
    let (pid, frames) = own.unwrap_or_default();
    // A sample that was parsed has a frame.
    let address = frames.first().copied().unwrap_or_default();
    let owner = atlas.owner(pid);
    if has(sample, flags::KERNEL) {
        owner.place(address)
    } else {
        owner.jumped_to(address)
    }
}

fn has(sample: &Sample, flag: u16) -> bool {
    sample.header().flags & flag != 0
}

/// Whether a part of the chain is not whole; see [`flags::incomplete`].
fn lacks(sample: &Sample, part: usize) -> bool {
    has(sample, flags::incomplete(part))
}

/// Whether further frames follow those of the record, and are not known to be unreadable.
fn ends_open(sample: &Sample) -> bool {
    let last = sample.parts().count();
    let breaks_off = lacks(sample, last) || lacks(sample, last + 1);
    has(sample, flags::TRUNCATED) && !has(sample, flags::CUT) && breaks_off
}

fn steps(sample: &Sample, atlas: Atlas<'_, '_>, leaf: Place) -> Vec<Step> {
    let mut steps = Vec::new();
    let last = sample.parts().count();
    let beyond = lacks(sample, last + 1);
    for (part, number) in sample.parts().zip(1..) {
        let owner = atlas.owner(part.owner.pid);
        let (first, mut callers) = match part.frames {
            [first, callers @ ..] => (*first, callers),
            // A part that was parsed has a frame.
            [] => continue,
        };
        if number == 1 {
            restore_caller(sample, atlas, leaf, &mut steps);
            let kernel;
            (kernel, callers) = callers.split_at(kernel_callers(sample, callers));
            steps.extend(
                kernel
                    .iter()
                    .map(|&address| Step::Caller(owner.place(address))),
            );
            if lacks(sample, 0) {
                push_missing(&mut steps);
            }
            if has(sample, flags::KERNEL)
                && let [program, rest @ ..] = callers
            {
                let place = owner.place(*program);
                steps.push(Step::Caller(place));
                note_hidden_caller(atlas, place, &mut steps);
                callers = rest;
            }
        } else {
            let place = owner.place(first);
            steps.push(Step::Client(place));
            note_hidden_caller(atlas, place, &mut steps);
        }
        steps.extend(
            callers
                .iter()
                .map(|&address| Step::Caller(owner.place(address))),
        );
        // What the record had no room for at the end of the chain is told with what the depth cuts off.
        let more_follows = number < last || beyond;
        if lacks(sample, number) && (more_follows || has(sample, flags::CUT)) {
            push_missing(&mut steps);
        }
    }
    if has(sample, flags::CHANGED) || beyond && has(sample, flags::CUT) {
        steps.push(Step::MissingClient);
    }
    steps
}

/// Puts the caller of the leaf back if the walk missed it.
fn restore_caller(sample: &Sample, atlas: Atlas<'_, '_>, leaf: Place, steps: &mut Vec<Step>) {
    let owner = atlas.owner(sample.parts().next().map_or(0, |own| own.owner.pid));
    let is_code = |word| atlas.is_code(owner.place(word));
    match repair::caller(sample, atlas.rule(leaf), is_code) {
        Caller::Walked => {}
        Caller::Restored(address) => steps.push(Step::Caller(owner.place(address))),
        Caller::Lost => push_missing(steps),
    }
}

/// Where a program entered the kernel before its function's frame was there, or without one, the walk goes straight to the caller's
/// caller; the word that would tell is on the program's stack, of which the record keeps none then.
fn note_hidden_caller(atlas: Atlas<'_, '_>, place: Place, steps: &mut Vec<Step>) {
    if matches!(atlas.rule(place), Rule::StackPointer { .. }) {
        push_missing(steps);
    }
}

/// How many of the leaf's callers are the kernel's; they come before those of the program.
fn kernel_callers(sample: &Sample, callers: &[u64]) -> usize {
    if !has(sample, flags::KERNEL) {
        return 0;
    }
    callers
        .iter()
        .take_while(|&&address| is_kernel(address))
        .count()
}

/// Two missing frames in a row are one gap.
fn push_missing(steps: &mut Vec<Step>) {
    if steps.last() != Some(&Step::Missing) {
        steps.push(Step::Missing);
    }
}
