//! A profile in the folded-stack format that flame graph tools read: a chain a line, the outermost frame first, frames
//! joined by `;`, then a blank and the count.
//!
//! Frames are functions without offsets, as those tools expect; chains that differ in call sites alone are added up.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::account::Payer;
use crate::notes;
use crate::profile::{Account, Chain, Frame, Profile, Step};
use crate::text::Lines;

/// Writes the hottest chains. A profile without samples gets a line that begins with `#` and says why.
#[must_use]
pub fn stacks(profile: &Profile, chains: usize) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for chain in profile.chains.iter().take(chains) {
        *counts.entry(stack(profile, chain)).or_default() += chain.count;
    }
    let left: u64 = profile
        .chains
        .iter()
        .skip(chains)
        .map(|chain| chain.count)
        .sum();
    let left = left + profile.counts.beyond_table;
    if left > 0 {
        *counts.entry("(other chains)".into()).or_default() += left;
    }
    let mut sorted: Vec<(String, u64)> = counts.into_iter().collect();
    sorted.sort_by_key(|&(_, count)| Reverse(count));
    let mut lines = Lines::default();
    for (stack, count) in sorted {
        lines.push(&format!("{stack} {count}"));
    }
    if profile.counts.reported == 0 {
        lines.push(&format!("# {}", notes::why_empty(profile)));
    }
    lines.finish()
}

fn stack(profile: &Profile, chain: &Chain) -> String {
    let mut frames: Vec<String> = Vec::with_capacity(chain.steps.len() + 3);
    let account = chain
        .account
        .and_then(|index| profile.accounts.get(index as usize));
    frames.extend(account.map(payer));
    if chain.more.is_some() {
        frames.push("...".into());
    }
    for step in chain.steps.iter().rev() {
        frames.push(match *step {
            Step::Caller(frame) | Step::Client(frame) => name(profile, frame),
            Step::Missing | Step::MissingClient => "?".into(),
        });
    }
    frames.push(name(profile, chain.leaf));
    frames.join(";")
}

/// Who pays, as the outermost frame.
fn payer(account: &Account) -> String {
    match account.payer {
        Payer::Process(pid) => format!("{} (pid {pid})", account.name.replace(';', ",")),
        Payer::Nobody => "(nobody)".into(),
        Payer::Unknown => "(clients that are not known)".into(),
    }
}

/// `;` separates frames, so it cannot be in a name (an array type has one).
fn name(profile: &Profile, frame: Frame) -> String {
    profile.place_name(frame).replace(';', ",")
}
