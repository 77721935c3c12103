//! From the text of a report to what it says.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};

use super::{Account, Chain, Fates, Report};

/// What the first line of a report begins with, and no other line of one.
const FIRST: &str = "profiled ";

impl Report {
    /// Reads a report, and checks what must hold in every one: each sample is in a chain or in a note that counts it.
    ///
    /// # Errors
    /// If it does not have the documented form, or does not add up.
    pub fn parse(text: &str) -> Result<Self> {
        let report = Self::parse_lines(text).and_then(Self::checked);
        report.with_context(|| format!("in this report:\n{text}"))
    }

    /// Checks each report in what a command printed: `repeat` prints several, and a program in the background something before one.
    ///
    /// # Errors
    /// As for [`Self::parse`], of the first that is wrong.
    pub fn check_all(text: &str) -> Result<()> {
        let starts = text.match_indices(FIRST).map(|(at, _)| at);
        let starts = starts.filter(|&at| at == 0 || text[..at].ends_with('\n'));
        let mut ends: Vec<usize> = starts.collect();
        ends.push(text.len());
        let mut reports = ends.windows(2).map(|ends| &text[ends[0]..ends[1]]);
        reports.try_for_each(|report| Self::parse(report).map(drop))
    }

    fn parse_lines(text: &str) -> Result<Self> {
        let mut lines = text.lines().peekable();
        let first = lines.next().context("it is empty")?;
        let window = between(first, FIRST, " ms")?;
        let (profiled, asked) = match window.split_once(" of ") {
            Some((profiled, asked)) => (profiled, Some(asked)),
            None => (window, None),
        };
        let mut second = lines.next().context("it has one line")?.to_owned();
        // The source may be two; then the line is too long, and goes on behind two blanks.
        while let Some(rest) = lines.next_if(|line| line.starts_with("  ")) {
            second.push_str(&rest[1..]);
        }
        let fields: Vec<&str> = second.splitn(3, ", ").collect();
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
                (owed, _) if line.starts_with("        own ") => {
                    let last = report.accounts.last_mut().context("on no account")?;
                    *last = split(last, owed)?;
                }
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
}

/// An account, which is split if what is executed by whom is told below.
fn account(count: &str, who: &str) -> Result<Account> {
    let (_, count) = count.split_once("% ").context("no percentage")?;
    let count = count.parse()?;
    let is_unknown = who == "clients that are not known";
    Ok(Account {
        count,
        who: who.to_owned(),
        own: if is_unknown { 0 } else { count },
        by_others: if is_unknown { count } else { 0 },
        for_others: 0,
    })
}

/// By whom what is on an account was executed: `own 43, by others 257; 162 more for others`.
fn split(account: &Account, line: &str) -> Result<Account> {
    let (line, for_others) = line.split_once("; ").unwrap_or((line, "0"));
    let (own, by_others) = line.split_once(", by others ").context("not by others")?;
    Ok(Account {
        own: between(own, "own ", "")?.parse()?,
        by_others: by_others.parse()?,
        for_others: first_number(for_others)?,
        ..account.clone()
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
