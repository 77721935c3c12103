//! A profile from bytes, which may come from anywhere: everything is checked, nothing panics, and what is accepted can be
//! printed.

use ipc::abi::profile::Source;

use crate::account::{Balance, Payer};
use crate::bytes::{DecodeError, MAGIC, Reader, VERSION};
use crate::cpus::ByCpu;
use crate::encode::{payer, step};
use crate::process::Fate;
use crate::profile::{
    Account, Chain, Counts, Filter, Frame, ImageName, LeafAddress, More, Profile, Step,
};

/// Reads a profile.
///
/// # Errors
/// The bytes are not one; see [`DecodeError`].
pub fn decode(bytes: &[u8]) -> Result<Profile, DecodeError> {
    let mut from = Reader::new(bytes);
    if from.raw(MAGIC.len()) != Ok(&MAGIC) {
        return Err(DecodeError::NotAProfile);
    }
    match from.u32()? {
        VERSION => {}
        version => return Err(DecodeError::Version(version)),
    }
    let asked_ms = from.u32()?;
    let profiled_ms = from.u32()?;
    let source = Source::from_raw(from.u8()?.into()).ok_or(DecodeError::BadNumber)?;
    let depth = from.u8()?;
    let cpus = from.u32()?;
    let asked_cpus = from.u32()?;
    let counting = from.u32()?;
    let frequency = from.u64()?;
    let unconfirmed = from.u64()?;
    let filter = if flag(&mut from)? {
        Some(filter(&mut from)?)
    } else {
        None
    };
    let counts = counts(&mut from)?;
    let came = ByCpu(from.list(Reader::u64)?);
    let strings = from.list(Reader::text)?;
    let accounts = from.list(account)?;
    let images = from.list(|from| {
        Ok(ImageName {
            name: from.index(strings.len())?,
            build_id: from.bytes()?.to_vec(),
            problem: from.option(strings.len())?,
        })
    })?;
    let names = Names {
        strings: strings.len(),
        images: images.len(),
        accounts: accounts.len(),
    };
    let chains = from.list(|from| names.chain(from))?;
    let addresses = from.list(|from| {
        Ok(LeafAddress {
            image: from.index(images.len())?,
            address: from.u64()?,
            count: from.u64()?,
        })
    })?;
    from.finish()?;
    let profile = Profile {
        asked_ms,
        profiled_ms,
        source,
        frequency,
        depth,
        filter,
        cpus,
        asked_cpus,
        counting,
        unconfirmed,
        counts,
        came,
        strings,
        accounts,
        images,
        chains,
        addresses,
    };
    if adds_up(&profile) {
        Ok(profile)
    } else {
        Err(DecodeError::BadSum)
    }
}

fn adds_up(profile: &Profile) -> bool {
    let chains = profile.chains.iter().map(|chain| chain.count);
    let sum = chains
        .chain([profile.counts.beyond_table])
        .try_fold(0u64, u64::checked_add);
    let accounts = profile
        .accounts
        .iter()
        .map(|account| account.balance.charged());
    let charged = accounts.fold(0, u64::saturating_add);
    let read = profile
        .counts
        .reported
        .saturating_add(profile.counts.other_tasks);
    sum == Some(profile.counts.reported)
        && charged <= profile.counts.reported
        && profile.came.sum() == read
}

fn flag(from: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match from.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(DecodeError::BadNumber),
    }
}

fn filter(from: &mut Reader<'_>) -> Result<Filter, DecodeError> {
    let pid = from.u32()?;
    let fate = match from.u8()? {
        0 => Fate::Live,
        1 => Fate::Ended,
        2 => Fate::Unknown,
        _ => return Err(DecodeError::BadNumber),
    };
    Ok(Filter {
        pid,
        name: from.text()?,
        fate,
    })
}

/// Fields in the order in which they are evaluated, which is that of the bytes.
fn counts(from: &mut Reader<'_>) -> Result<Counts, DecodeError> {
    Ok(Counts {
        taken: from.u64()?,
        reported: from.u64()?,
        other_tasks: from.u64()?,
        outside: from.u64()?,
        overwritten: from.u64()?,
        corrupt: from.u64()?,
        beyond_table: from.u64()?,
        table: from.u64()?,
        missed: from.u64()?,
        truncated: from.u64()?,
        cut: from.u64()?,
        unmapped: from.u64()?,
        changed: from.u64()?,
        late: from.u64()?,
        throttled: from.u64()?,
        cost_ns: from.u64()?,
        asked: from.u64()?,
        delay_ns: from.u64()?,
        delay_max_ns: from.u64()?,
    })
}

fn account(from: &mut Reader<'_>) -> Result<Account, DecodeError> {
    let (kind, pid) = (from.u8()?, from.u32()?);
    let payer = match kind {
        payer::PROCESS => Payer::Process(pid),
        payer::NOBODY => Payer::Nobody,
        payer::UNKNOWN => Payer::Unknown,
        _ => return Err(DecodeError::BadNumber),
    };
    Ok(Account {
        payer,
        name: from.text()?,
        balance: Balance {
            own: from.u64()?,
            by_others: from.u64()?,
            for_others: from.u64()?,
        },
    })
}

/// How many names, images and accounts there are, for the indices in chains.
struct Names {
    strings: usize,
    images: usize,
    accounts: usize,
}

impl Names {
    fn chain(&self, from: &mut Reader<'_>) -> Result<Chain, DecodeError> {
        let count = from.u64()?;
        let account = from.option(self.accounts)?;
        if account.is_some() != (self.accounts > 0) {
            return Err(DecodeError::BadNumber);
        }
        let leaf = self.frame(from)?;
        let high = from.u64()?;
        let steps = from.list(|from| {
            Ok(match from.u8()? {
                step::CALLER => Step::Caller(self.frame(from)?),
                step::CLIENT => Step::Client(self.frame(from)?),
                step::MISSING => Step::Missing,
                step::MISSING_CLIENT => Step::MissingClient,
                _ => return Err(DecodeError::BadNumber),
            })
        })?;
        let more = if flag(from)? {
            Some(More {
                least: from.u32()?,
                most: from.u32()?,
                open: flag(from)?,
            })
        } else {
            None
        };
        Ok(Chain {
            count,
            account,
            leaf,
            high,
            steps,
            more,
        })
    }

    fn frame(&self, from: &mut Reader<'_>) -> Result<Frame, DecodeError> {
        Ok(Frame {
            image: from.index(self.images)?,
            symbol: from.option(self.strings)?,
            offset: from.u64()?,
        })
    }
}
