//! The profile as the shell prints it, read back: what scripts may rely on (`docs/report.md`). In every report that is read, every
//! sample that was taken must be accounted for.

mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use anyhow::{Result, ensure};

pub use parse::between;

/// A report of `profile`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Milliseconds that were profiled.
    pub profiled_ms: u64,
    /// Milliseconds that were asked for, where that differs.
    pub asked_ms: Option<u64>,
    /// Samples in the report.
    pub samples: u64,
    /// Samples taken, where the report is of one process.
    pub taken: Option<u64>,
    /// CPUs that contributed.
    pub cpus: u64,
    /// Samples lost.
    pub dropped: u64,
    /// Long name of the source.
    pub source: String,
    /// Hottest first; by client, those of an account behind those of the one before.
    pub chains: Vec<Chain>,
    /// By client: whose time it was, the largest first.
    pub accounts: Vec<Account>,
    /// Samples in the report whose chains are not printed, or were too many for profd.
    pub not_shown: u64,
    /// What was lost or strange, by name.
    pub odd: BTreeMap<String, u64>,
    fates: Option<Fates>,
}

/// What became of the samples of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fates {
    /// Counted by the kernel, apart from the rings.
    pub taken: u64,
    /// In the report.
    pub reported: u64,
    /// Of another process than the one asked for.
    pub other_tasks: u64,
    /// Before the window or after it.
    pub outside: u64,
    /// Lost.
    pub dropped: u64,
}

/// What was spent on behalf of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Samples.
    pub count: u64,
    /// Its name and pid as printed: `front (pid 7)`; or who is meant where it is none.
    pub who: String,
    /// It was executing.
    pub own: u64,
    /// Others were.
    pub by_others: u64,
    /// It was executing on the account of others.
    pub for_others: u64,
}

/// One chain: where samples hit, and how the code got there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Index of its account, by client.
    pub account: Option<usize>,
    /// Samples.
    pub count: u64,
    /// Percent of the samples reported, in tenths.
    pub tenths: u64,
    /// Program.
    pub image: String,
    /// Function, or address.
    pub symbol: String,
    /// The first and the last offset in it that was hit; 0 for an address.
    pub offsets: RangeInclusive<u64>,
    /// The lines of callers, without indentation: `<- shares`main+0x61`.
    pub callers: Vec<String>,
}

impl Report {
    /// What became of every sample that was taken. It is told unless all of them are reported.
    #[must_use]
    pub fn fates(&self) -> Fates {
        self.fates.unwrap_or(Fates {
            taken: self.samples,
            reported: self.samples,
            other_tasks: 0,
            outside: 0,
            dropped: 0,
        })
    }

    /// Samples whose leaf is this function of this program.
    #[must_use]
    pub fn count(&self, image: &str, symbol: &str) -> u64 {
        let hits = self.chains.iter();
        let hits = hits.filter(|chain| chain.image == image && chain.symbol == symbol);
        hits.map(|chain| chain.count).sum()
    }

    /// By client, every sample that has room is on one account, with what was executed for it; and so is every chain.
    fn check_accounts(&self) -> Result<()> {
        if self.accounts.is_empty() {
            return Ok(());
        }
        let charged: u64 = self.accounts.iter().map(|account| account.count).sum();
        ensure!(
            charged == self.samples,
            "{charged} of {} samples are on an account",
            self.samples
        );
        for (index, account) in self.accounts.iter().enumerate() {
            let chains = self.chains.iter();
            let chains = chains.filter(|chain| chain.account == Some(index));
            let chains: u64 = chains.map(|chain| chain.count).sum();
            ensure!(
                chains <= account.count && account.own + account.by_others == account.count,
                "{chains} samples in chains of {account:?}"
            );
        }
        let sum = |of: fn(&Account) -> u64| self.accounts.iter().map(of).sum::<u64>();
        let (by_others, for_others) = (
            sum(|account| account.by_others),
            sum(|account| account.for_others),
        );
        ensure!(
            by_others == for_others,
            "{by_others} samples by others, and {for_others} for others"
        );
        Ok(())
    }

    /// The report, if it adds up.
    fn checked(self) -> Result<Self> {
        let shown: u64 = self.chains.iter().map(|chain| chain.count).sum();
        ensure!(
            shown + self.not_shown == self.samples,
            "{shown} samples are shown and {} are not, of {}",
            self.not_shown,
            self.samples
        );
        let fates = self.fates();
        ensure!(
            fates.taken == fates.reported + fates.other_tasks + fates.outside + fates.dropped,
            "not every sample is accounted for: {fates:?}"
        );
        ensure!(
            (fates.reported, fates.dropped) == (self.samples, self.dropped)
                && self.taken.is_none_or(|taken| taken == fates.taken),
            "the head says otherwise: {fates:?}"
        );
        let unaccounted = self.odd.get("unaccounted");
        ensure!(
            unaccounted.is_none_or(|&samples| samples == 0),
            "{unaccounted:?} samples are unaccounted"
        );
        let in_order = |a: &Chain, b: &Chain| a.account != b.account || a.count >= b.count;
        ensure!(
            self.chains.is_sorted_by(in_order),
            "the hottest chains are not first"
        );
        self.check_accounts()?;
        for chain in &self.chains {
            let exact = chain.count * 1000;
            let printed = chain.tenths * self.samples;
            ensure!(
                exact.abs_diff(printed) <= self.samples,
                "{} of {} samples are not {} tenths of a percent",
                chain.count,
                self.samples,
                chain.tenths
            );
        }
        Ok(self)
    }
}
