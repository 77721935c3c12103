//! Whose time it was: each sample is on the account of exactly one process.
//!
//! That is the outermost client of its chain, on whose behalf all the servers inward of it worked; a process that serves nobody
//! is on its own account. So the accounts add up to the samples. A client that a sample is known to lack may have had any client
//! of its own: nobody is charged for a guess.

use alloc::collections::BTreeMap;

use ipc::abi::profile::flags;
use sample_ring::Sample;

/// Accounts that a ledger holds.
pub const ACCOUNTS: usize = 512;

/// On whose account a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Payer {
    /// A process.
    Process(u32),
    /// No process ran, and the CPU was idle or about to be.
    Nobody,
    /// A client that the record does not hold.
    Unknown,
}

impl Payer {
    /// Who executed.
    #[must_use]
    pub fn runner(sample: &Sample) -> Self {
        match sample.parts().next().map_or(0, |own| own.owner.pid) {
            0 => Self::Nobody,
            pid => Self::Process(pid),
        }
    }

    /// On whose behalf.
    #[must_use]
    pub fn of(sample: &Sample) -> Self {
        let parts = sample.parts().count();
        let lost = flags::CHANGED | flags::incomplete(parts + 1);
        if sample.header().flags & lost != 0 {
            return Self::Unknown;
        }
        match sample.parts().last() {
            Some(client) if parts > 1 => Self::Process(client.owner.pid),
            _ => Self::runner(sample),
        }
    }
}

/// Whether a process took part in a sample: it was executing, or a client behind who was.
#[must_use]
pub fn takes_part(sample: &Sample, pid: u32) -> bool {
    sample.parts().any(|part| part.owner.pid == pid)
}

/// Samples on an account, and what its process did for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// It was executing, on its own account.
    pub own: u64,
    /// Others were executing on its account.
    pub by_others: u64,
    /// It was executing on the account of others.
    pub for_others: u64,
}

impl Balance {
    /// Samples on this account.
    #[must_use]
    pub const fn charged(&self) -> u64 {
        self.own.saturating_add(self.by_others)
    }
}

/// All accounts.
#[derive(Clone, Debug, Default)]
pub struct Ledger(BTreeMap<Payer, Balance>);

impl Ledger {
    /// Enters a sample; returns who pays. `None` if there is no room for a further account, and nothing is entered.
    pub fn enter(&mut self, sample: &Sample) -> Option<Payer> {
        let (payer, runner) = (Payer::of(sample), Payer::runner(sample));
        let is_new = |who| usize::from(!self.0.contains_key(&who));
        let new = if payer == runner {
            is_new(payer)
        } else {
            is_new(payer) + is_new(runner)
        };
        if self.0.len() + new > ACCOUNTS {
            return None;
        }
        let account = self.0.entry(payer).or_default();
        if payer == runner {
            account.own += 1;
        } else {
            account.by_others += 1;
            self.0.entry(runner).or_default().for_others += 1;
        }
        Some(payer)
    }

    /// Every account.
    pub fn accounts(&self) -> impl Iterator<Item = (Payer, Balance)> {
        self.0.iter().map(|(&payer, &balance)| (payer, balance))
    }
}
