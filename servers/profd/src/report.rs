//! A profile as a person reads it. Scripts may rely on the first two lines and on the form of the chains
//! (`docs/report.md`); notes come after them.

use alloc::format;
use alloc::string::String;

use crate::account::{Balance, Payer};
use crate::header;
use crate::notes;
use crate::profile::{Account, Chain, Frame, More, Profile, Step};
use crate::shorten::Shortener;
use crate::text::{COLUMNS, Lines};

/// Fewest columns that a name gets, whatever stands beside it.
const NAME_COLUMNS: usize = 12;

/// How much to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Chains, the hottest first.
    pub chains: usize,
    /// Whole names, and every counter.
    pub verbose: bool,
}

/// Writes the report.
#[must_use]
pub fn report(profile: &Profile, options: Options) -> String {
    let mut lines = Lines::default();
    header::write(profile, options.verbose, &mut lines);
    let accounts = profile.accounts.iter();
    let accounts = accounts.map(|account| account.balance.charged());
    let chains = profile.chains.iter().map(|chain| chain.count);
    let hottest = accounts.chain(chains).max().unwrap_or(0);
    let mut writer = Writer {
        profile,
        share_width: percent(hottest, profile.counts.reported).len().max(5),
        options,
        names: Shortener::default(),
        shown: Shown::default(),
        lines,
    };
    if profile.accounts.is_empty() {
        writer.chains(None);
    }
    for (account, index) in profile.accounts.iter().zip(0..) {
        writer.account(account);
        writer.chains(Some(index));
    }
    let Writer {
        shown, mut lines, ..
    } = writer;
    notes::write(profile, shown, options.verbose, &mut lines);
    lines.finish()
}

/// How much of a profile its report shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    /// Chains.
    pub chains: u64,
    /// Their samples.
    pub samples: u64,
}

struct Writer<'p> {
    profile: &'p Profile,
    /// Columns of the shares, which stand below each other.
    share_width: usize,
    options: Options,
    names: Shortener,
    shown: Shown,
    lines: Lines,
}

impl Writer<'_> {
    /// What was spent on behalf of one process, and what it did for others.
    fn account(&mut self, account: &Account) {
        let Balance {
            own,
            by_others,
            for_others,
        } = account.balance;
        let charged = account.balance.charged();
        let before = format!("{} {charged} for ", self.share(charged));
        let line = match account.payer {
            Payer::Process(pid) => self.fitting(&before, &account.name, &format!(" (pid {pid})")),
            Payer::Nobody => format!("{before}nobody: no process ran"),
            Payer::Unknown => format!("{before}clients that are not known"),
        };
        self.lines.push(&line);
        let more = match for_others {
            0 => String::new(),
            more => format!("; {more} more for others"),
        };
        let is_split = by_others > 0 || for_others > 0;
        if matches!(account.payer, Payer::Process(_)) && is_split {
            let line = format!("        own {own}, by others {by_others}{more}");
            self.lines.push(&line);
        }
    }

    /// The hottest chains of an account, or of all.
    fn chains(&mut self, account: Option<u32>) {
        let indent = if account.is_some() { "  " } else { "" };
        for chain in self.profile.chains_of(account).take(self.options.chains) {
            self.chain(chain, indent);
            self.shown.chains += 1;
            self.shown.samples += chain.count;
        }
    }

    fn chain(&mut self, chain: &Chain, indent: &str) {
        let before = format!("{indent}{} {} ", self.share(chain.count), chain.count);
        let span = match chain.leaf.symbol {
            Some(_) if chain.high > chain.leaf.offset => {
                format!("+{:#x}..{:#x}", chain.leaf.offset, chain.high)
            }
            _ => offset(chain.leaf),
        };
        self.place(&before, chain.leaf, &span);
        for step in &chain.steps {
            match *step {
                Step::Caller(frame) => self.place("        <- ", frame, &offset(frame)),
                Step::Client(frame) => self.place("        <= ", frame, &offset(frame)),
                Step::Missing => self.lines.push("        <- ?"),
                Step::MissingClient => self.lines.push("        <= ?"),
            }
        }
        if let Some(more) = chain.more {
            self.lines.push(&format!("        <- {}", rest(more)));
        }
    }

    /// Percent of the samples reported.
    fn share(&self, count: u64) -> String {
        let share = percent(count, self.profile.counts.reported);
        format!("{share:>0$}", self.share_width)
    }

    fn place(&mut self, before: &str, frame: Frame, after: &str) {
        let name = self.profile.place_name(frame);
        let line = self.fitting(before, &name, after);
        self.lines.push(&line);
    }

    /// A line with a name that is shortened if it must be.
    fn fitting(&mut self, before: &str, name: &str, after: &str) -> String {
        if self.options.verbose {
            return format!("{before}{name}{after}");
        }
        let width = COLUMNS
            .saturating_sub(before.len() + after.len())
            .max(NAME_COLUMNS);
        format!("{before}{}{after}", self.names.fit(name, width))
    }
}

/// One count as percent of another, with one decimal, rounded.
fn percent(count: u64, of: u64) -> String {
    let of = u128::from(of.max(1));
    let tenths = (u128::from(count) * 1000 + of / 2) / of;
    format!("{}.{}%", tenths / 10, tenths % 10)
}

fn offset(frame: Frame) -> String {
    match frame.symbol {
        Some(_) => format!("+{:#x}", frame.offset),
        None => String::new(),
    }
}

fn rest(more: More) -> String {
    let open = if more.open { "+" } else { "" };
    match more {
        More { most: 0, .. } => "...".into(),
        More { least, most, .. } if least == most => format!("... ({most}{open} more)"),
        More { least, most, .. } => format!("... ({least}..{most}{open} more)"),
    }
}
