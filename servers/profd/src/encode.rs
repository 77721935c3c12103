//! A profile as bytes. The inverse is [`crate::decode`]; the layout is in `docs/report.md`.

use alloc::vec::Vec;

use crate::account::Payer;
use crate::bytes::{MAGIC, VERSION, Writer};
use crate::profile::{Account, Chain, Counts, Filter, Frame, Profile, Step};

/// Numbers of the steps of a chain.
pub(crate) mod step {
    pub(crate) const CALLER: u8 = 0;
    pub(crate) const CLIENT: u8 = 1;
    pub(crate) const MISSING: u8 = 2;
    pub(crate) const MISSING_CLIENT: u8 = 3;
}

/// Numbers of those who pay.
pub(crate) mod payer {
    pub(crate) const PROCESS: u8 = 0;
    pub(crate) const NOBODY: u8 = 1;
    pub(crate) const UNKNOWN: u8 = 2;
}

/// Writes a profile.
#[must_use]
pub fn encode(profile: &Profile) -> Vec<u8> {
    let mut to = Writer::default();
    to.raw(&MAGIC);
    to.u32(VERSION);
    to.u32(profile.asked_ms);
    to.u32(profile.profiled_ms);
    to.u8(profile.source as u8);
    to.u8(profile.depth);
    to.u32(profile.cpus);
    to.u32(profile.asked_cpus);
    to.u32(profile.counting);
    to.u64(profile.frequency);
    to.u64(profile.unconfirmed);
    filter(&mut to, profile.filter.as_ref());
    for count in counts(&profile.counts) {
        to.u64(count);
    }
    to.list(&profile.came.0, |to, &samples| to.u64(samples));
    to.list(&profile.strings, |to, text| to.bytes(text.as_bytes()));
    to.list(&profile.accounts, account);
    to.list(&profile.images, |to, image| {
        to.u32(image.name);
        to.bytes(&image.build_id);
        to.option(image.problem);
    });
    to.list(&profile.chains, chain);
    to.list(&profile.addresses, |to, leaf| {
        to.u32(leaf.image);
        to.u64(leaf.address);
        to.u64(leaf.count);
    });
    to.finish()
}

/// The counts in the order of their bytes.
const fn counts(counts: &Counts) -> [u64; 19] {
    [
        counts.taken,
        counts.reported,
        counts.other_tasks,
        counts.outside,
        counts.overwritten,
        counts.corrupt,
        counts.beyond_table,
        counts.table,
        counts.missed,
        counts.truncated,
        counts.cut,
        counts.unmapped,
        counts.changed,
        counts.late,
        counts.throttled,
        counts.cost_ns,
        counts.asked,
        counts.delay_ns,
        counts.delay_max_ns,
    ]
}

fn filter(to: &mut Writer, filter: Option<&Filter>) {
    to.u8(filter.is_some().into());
    if let Some(filter) = filter {
        to.u32(filter.pid);
        to.u8(filter.fate as u8);
        to.bytes(filter.name.as_bytes());
    }
}

fn account(to: &mut Writer, account: &Account) {
    let (kind, pid) = match account.payer {
        Payer::Process(pid) => (payer::PROCESS, pid),
        Payer::Nobody => (payer::NOBODY, 0),
        Payer::Unknown => (payer::UNKNOWN, 0),
    };
    to.u8(kind);
    to.u32(pid);
    to.bytes(account.name.as_bytes());
    to.u64(account.balance.own);
    to.u64(account.balance.by_others);
    to.u64(account.balance.for_others);
}

fn chain(to: &mut Writer, chain: &Chain) {
    to.u64(chain.count);
    to.option(chain.account);
    frame(to, chain.leaf);
    to.u64(chain.high);
    to.list(&chain.steps, |to, &step| match step {
        Step::Caller(caller) => {
            to.u8(step::CALLER);
            frame(to, caller);
        }
        Step::Client(client) => {
            to.u8(step::CLIENT);
            frame(to, client);
        }
        Step::Missing => to.u8(step::MISSING),
        Step::MissingClient => to.u8(step::MISSING_CLIENT),
    });
    to.u8(chain.more.is_some().into());
    if let Some(more) = chain.more {
        to.u32(more.least);
        to.u32(more.most);
        to.u8(more.open.into());
    }
}

fn frame(to: &mut Writer, frame: Frame) {
    to.u32(frame.image);
    to.option(frame.symbol);
    to.u64(frame.offset);
}
