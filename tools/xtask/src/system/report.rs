//! The profile as the shell prints it, read back: what scripts may rely on (`docs/report.md`). In every report that is read, every
//! sample that was taken must be accounted for.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use anyhow::{Context as _, Result, bail, ensure};

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
    /// Reads a report, and checks what must hold in every one: each sample is in a chain or in a note that counts it.
    ///
    /// # Errors
    /// If it does not have the documented form, or does not add up.
    pub fn parse(text: &str) -> Result<Self> {
        let report = Self::parse_lines(text).and_then(Self::checked);
        report.with_context(|| format!("in this report:\n{text}"))
    }

    fn parse_lines(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let first = lines.next().context("it is empty")?;
        let window = between(first, "profiled ", " ms")?;
        let (profiled, asked) = match window.split_once(" of ") {
            Some((profiled, asked)) => (profiled, Some(asked)),
            None => (window, None),
        };
        let second = lines.next().context("it has one line")?;
        let fields: Vec<&str> = second.split(", ").collect();
        let [samples_on_cpus, dropped, source] = fields[..] else {
            bail!("the second line has {} fields", fields.len());
        };
        let (samples, cpus) = samples_on_cpus.split_once(" on ").context("no CPUs")?;
        let (samples, taken) = match samples.split_once(" samples (of ") {
            Some((samples, taken)) => (samples, Some(between(taken, "", " taken)")?)),
            None => (between(samples, "", " samples")?, None),
        };
        let mut report = Self {
            profiled_ms: profiled.parse()?,
            asked_ms: asked.map(str::parse).transpose()?,
            samples: samples.parse()?,
            taken: taken.map(str::parse).transpose()?,
            cpus: between(cpus, "", " cpus")?.parse()?,
            dropped: between(dropped, "", " dropped")?.parse()?,
            source: between(source, "source ", "")?.to_owned(),
            chains: Vec::new(),
            accounts: Vec::new(),
            not_shown: 0,
            odd: BTreeMap::new(),
            fates: None,
        };
        let mut notes = String::new();
        for line in lines {
            match (line.trim_start(), report.chains.last_mut()) {
                (caller, Some(chain)) if caller.starts_with("<-") || caller.starts_with("<=") => {
                    chain.callers.push(caller.to_owned());
                }
                (line, _) if is_leaf(line) => match line.split_once(" for ") {
                    Some((count, rest)) => report.accounts.push(account(count, rest)?),
                    None => report.chains.push(Chain {
                        account: report.accounts.len().checked_sub(1),
                        ..leaf(line)?
                    }),
                },
                // A note; one too long for a line goes on behind two blanks.
                (words, _) => {
                    notes.push_str(if line.starts_with("  ") { " " } else { "\n" });
                    notes.push_str(words);
                }
            }
        }
        for note in notes.lines() {
            report.heed(note)?;
        }
        Ok(report)
    }

    /// Takes from a note what it says of samples; most are for people alone.
    fn heed(&mut self, note: &str) -> Result<()> {
        if let Some(rest) = note.strip_prefix("not shown: ") {
            let (_, samples) = rest.split_once(", ").context("no samples not shown")?;
            self.not_shown += first_number(samples)?;
        } else if let Some(rest) = note.strip_prefix("table full: ") {
            self.not_shown += first_number(rest)?;
        } else if let Some(rest) = note.strip_prefix("odd: ") {
            let counts = rest.split(", ").map(|count| count.rsplit_once(' '));
            for count in counts {
                let (name, count) = count.context("no count of what is odd")?;
                self.odd.insert(name.to_owned(), count.parse()?);
            }
        } else if let Some(rest) = note.strip_prefix("taken ") {
            let (taken, rest) = rest.split_once(": ").context("nothing became of those")?;
            let fates = rest.split(", ").map(first_number);
            let fates: Vec<u64> = fates.collect::<Result<_>>()?;
            let [reported, other_tasks, outside, dropped] = fates[..] else {
                bail!("{} things became of those taken", fates.len());
            };
            self.fates = Some(Fates {
                taken: taken.parse()?,
                reported,
                other_tasks,
                outside,
                dropped,
            });
        }
        Ok(())
    }

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

fn account(count: &str, rest: &str) -> Result<Account> {
    let (_, count) = count.split_once("% ").context("no percentage")?;
    let count = count.parse()?;
    let (who, rest) = rest.split_once(": ").unwrap_or((rest, ""));
    let (rest, for_others) = rest.split_once("; ").unwrap_or((rest, "0"));
    let (own, by_others) = match rest.split_once(", by others ") {
        Some((own, by_others)) => (between(own, "own ", "")?.parse()?, by_others.parse()?),
        None if who == "nobody" => (count, 0),
        // A client that is not known is not who was executing.
        None => (0, count),
    };
    Ok(Account {
        count,
        who: who.to_owned(),
        own,
        by_others,
        for_others: first_number(for_others)?,
    })
}

fn is_leaf(line: &str) -> bool {
    line.split_once("% ").is_some_and(|(percent, _)| {
        percent
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

fn leaf(line: &str) -> Result<Chain> {
    let (percent, rest) = line.split_once("% ").context("no percentage")?;
    let (count, place) = rest.split_once(' ').context("no count")?;
    let (image, place) = place.split_once('`').context("no program")?;
    // The offset is last; symbols may hold a plus sign of their own.
    let (symbol, offsets) = place.rsplit_once('+').unwrap_or((place, "0x0"));
    let (first, last) = offsets.split_once("..").unwrap_or((offsets, offsets));
    let (whole, tenth) = percent.split_once('.').context("no tenths")?;
    Ok(Chain {
        account: None,
        count: count.parse()?,
        tenths: whole.parse::<u64>()? * 10 + tenth.parse::<u64>()?,
        image: image.to_owned(),
        symbol: symbol.to_owned(),
        offsets: hexadecimal(first)?..=hexadecimal(last)?,
        callers: Vec::new(),
    })
}

fn hexadecimal(text: &str) -> Result<u64> {
    let digits = text.strip_prefix("0x");
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.with_context(|| format!("{text:?} is no offset"))
}

fn first_number(text: &str) -> Result<u64> {
    let number = text.split(' ').next().and_then(|word| word.parse().ok());
    number.with_context(|| format!("{text:?} does not begin with a number"))
}

/// What is between the two in a text that begins with one and ends with the other.
///
/// # Errors
/// If it does not.
pub fn between<'a>(text: &'a str, before: &str, after: &str) -> Result<&'a str> {
    let inner = text
        .strip_prefix(before)
        .and_then(|text| text.strip_suffix(after));
    inner.with_context(|| format!("{text:?} is not {before:?} .. {after:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_form_is_read() {
        let text = "\
profiled 1000 ms
3987 samples on 4 cpus, 0 dropped, source timer/nmi
sampling took 812 ns a sample, 0.08% of the window
75.2% 2998 kernel`idle+0x3
14.9% 594 shares`share_a+0x10..0x2c
        <- shares`main+0x61
 5.1% 203 kernel`ipc::transfer+0x12..0x48
        <- kernel`syscall_entry+0x5a
        <= netload`main+0x5c
a note
not shown: 2 chains, 180 samples
table full: 12 samples in chains beyond the 512 that
  it holds
";
        let report = Report::parse(text).unwrap();
        assert_eq!(report.not_shown, 192);
        assert_eq!((report.profiled_ms, report.asked_ms), (1000, None));
        assert_eq!((report.samples, report.taken, report.cpus), (3987, None, 4));
        assert_eq!((report.dropped, report.source.as_str()), (0, "timer/nmi"));
        assert_eq!(report.chains.len(), 3);
        assert_eq!(report.count("shares", "share_a"), 594);
        assert_eq!(report.chains[0].offsets, 3..=3);
        assert_eq!(report.chains[2].symbol, "ipc::transfer");
        assert_eq!(report.chains[2].offsets, 0x12..=0x48);
        assert_eq!(report.chains[2].callers[1], "<= netload`main+0x5c");
    }

    #[test]
    fn one_process_and_a_short_window_are_read() {
        let text = "profiled 310 of 2000 ms\n12 samples (of 120 taken) on 1 cpus, 3 dropped, source tick\n\
                    100.0% 12 a`b+0x1\n\
                    taken 120: 12 reported, 100 of other tasks, 5 outside the window, 3 dropped\n";
        let report = Report::parse(text).unwrap();
        assert_eq!((report.profiled_ms, report.asked_ms), (310, Some(2000)));
        assert_eq!((report.samples, report.taken), (12, Some(120)));
    }

    #[test]
    fn accounts_are_read_and_must_add_up() {
        let head = "profiled 9 ms\n100 samples on 1 cpus, 0 dropped, source tick\n";
        let report = |charged: u64, own: u64| {
            let accounts = format!(
                "{charged}.0% {charged} for front (pid 7): own {own}, by others 60\n  \
                 60.0% 60 back`work+0x1\n        <= front`main+0x1\n"
            );
            let rest = "30.0% 30 for nobody: no process ran\n  30.0% 30 kernel`idle+0x3\n \
                        0.0% 0 for back (pid 5): own 0, by others 0; 60 more for others\n\
                        not shown: 1 chain, 10 samples\n";
            Report::parse(&format!("{head}{accounts}{rest}"))
        };
        let read = report(70, 10).unwrap();
        let account = |index: usize| {
            let account = &read.accounts[index];
            let who = account.who.as_str();
            (who, account.own, account.by_others, account.for_others)
        };
        assert_eq!(account(0), ("front (pid 7)", 10, 60, 0));
        assert_eq!(account(1), ("nobody", 30, 0, 0));
        assert_eq!(account(2), ("back (pid 5)", 0, 0, 60));
        let accounts: Vec<_> = read.chains.iter().map(|chain| chain.account).collect();
        assert_eq!(accounts, [Some(0), Some(1)]);
        assert!(report(71, 11).is_err() && report(70, 11).is_err());
    }

    #[test]
    fn what_does_not_add_up_is_found() {
        let report = |chains: &str| {
            let header = "profiled 9 ms\n100 samples on 1 cpus, 0 dropped, source tick\n";
            Report::parse(&format!("{header}{chains}"))
        };
        assert!(report("60.0% 60 a`b+0x1\n40.0% 40 a`c+0x1\n").is_ok());
        assert!(report("60.0% 60 a`b+0x1\n41.0% 41 a`c+0x1\n").is_err());
        assert!(report("40.0% 40 a`b+0x1\n60.0% 60 a`c+0x1\n").is_err());
        let one = |percent, notes: &str| report(&format!("{percent}% 60 a`b+0x1\n{notes}"));
        assert!(one("60.0", "not shown: 1 chain, 40 samples\n").is_ok());
        assert!(one("60.0", "").is_err());
        assert!(one("60.0", "not shown: 1 chain, 39 samples\n").is_err());
        assert!(one("55.0", "not shown: 1 chain, 40 samples\n").is_err());
        let odd = "not shown: 1 chain, 40 samples\nodd: overwritten 1, missed 2,\n  unaccounted ";
        assert!(one("60.0", &format!("{odd}0, cut 1\n")).is_ok());
        assert!(one("60.0", &format!("{odd}1\n")).is_err());
        let account = |fates: &str| {
            let rest = "not shown: 1 chain, 40 samples";
            one("60.0", &format!("{rest}\ntaken {fates}\n"))
        };
        let others = "0 of other tasks, 7 outside the window";
        assert!(account(&format!("107: 100 reported, {others}, 0 dropped")).is_ok());
        assert!(account(&format!("108: 100 reported, {others}, 0 dropped")).is_err());
        assert!(account(&format!("108: 101 reported, {others}, 0 dropped")).is_err());
        assert!(account(&format!("108: 100 reported, {others}, 1 dropped")).is_err());
    }
}
