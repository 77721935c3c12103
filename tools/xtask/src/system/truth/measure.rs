//! Profiles a subject until there are enough samples of it.

use anyhow::{Context as _, Result, bail, ensure};

use crate::test::Verdict;

use super::super::report::{Account, Report};
use super::super::session::Session;
use super::bound;
use super::comparison::Comparison;
use super::source::Source;
use super::subject::{Bill, Item, Subject};

/// Starts that must be enough for a program to come to a CPU where it can be measured.
const STARTS: usize = 12;

/// What the samples of a subject were.
pub struct Counts {
    /// All.
    pub samples: u64,
    /// Of each share.
    pub of: Vec<u64>,
    /// On the accounts of its bill.
    pub charged: u64,
    /// Of each share of it.
    pub items: Vec<u64>,
}

/// Where a subject is measured.
#[derive(Clone, Copy)]
pub struct Place {
    /// Its time is counted in instructions: no CPU stands still while others go on.
    pub counted: bool,
    /// The first CPU hides what the subject does: it is measured behind that one.
    pub hides: bool,
}

/// Profiles it.
///
/// # Errors
/// If it is shown to do what it does not, or there are too few samples.
pub fn measure(
    session: &mut Session,
    subject: &Subject,
    source: &Source,
    place: Place,
) -> Result<Counts> {
    let pids = if place.hides {
        start_behind_the_first(session, subject)?
    } else {
        start(session, subject)?
    };
    let only = match subject.only {
        Some(index) => pids[index].to_string(),
        None => "all".into(),
    };
    let by_client = subject.bill.as_ref().map_or("", |_| " by-client");
    let line = format!("2000 {only} 512 depth 48 source {}{by_client}", source.word);
    let mut counts = Counts::new(subject);
    for _ in 0..source.windows {
        let report = if place.counted {
            Some(session.profile(&line)?)
        } else {
            session.profile_if_run(&line)?
        };
        let Some(report) = report else {
            continue;
        };
        if place.hides && !is_behind_the_first(session, &pids)? {
            continue;
        }
        counts.add(&report, subject, &pids)?;
        if counts.are_enough(subject, source) {
            end(session, &pids)?;
            return Ok(counts);
        }
    }
    bail!("{} samples are too few", counts.samples)
}

fn start(session: &mut Session, subject: &Subject) -> Result<Vec<u64>> {
    let programs = subject.programs.iter();
    programs.map(|program| session.start(program)).collect()
}

/// Ends programs, none of which has ended by itself. What others say of that comes when it likes.
fn end(session: &mut Session, pids: &[u64]) -> Verdict {
    for pid in pids.iter().rev() {
        let shown = session.settle(format!("kill {pid}\n").as_bytes())?;
        ensure!(!shown.contains("it has ended"), "{shown}");
    }
    Ok(())
}

/// Starts programs that come to another CPU than the first, which is taken meanwhile.
fn start_behind_the_first(session: &mut Session, subject: &Subject) -> Result<Vec<u64>> {
    for _ in 0..STARTS {
        let first = session.start("truth-shares 1 1 1")?;
        let pids = start(session, subject)?;
        end(session, &[first])?;
        if is_behind_the_first(session, &pids)? {
            return Ok(pids);
        }
        end(session, &pids)?;
    }
    bail!("{STARTS} times it came to the first CPU")
}

fn is_behind_the_first(session: &mut Session, pids: &[u64]) -> Result<bool> {
    let processes = session.processes()?;
    let mut those = processes.iter().filter(|it| pids.contains(&it.pid));
    Ok(those.all(|it| it.cpu != Some(0)))
}

impl Counts {
    fn new(subject: &Subject) -> Self {
        let items = subject.bill.as_ref().map_or(0, |bill| bill.shares.len());
        Self {
            samples: 0,
            of: vec![0; subject.shares.len()],
            charged: 0,
            items: vec![0; items],
        }
    }

    fn add(&mut self, report: &Report, subject: &Subject, pids: &[u64]) -> Verdict {
        ensure!(
            report.dropped == 0 && report.not_shown == 0,
            "samples are missing: {report:?}"
        );
        for chain in &report.chains {
            ensure!(!(subject.wrong)(chain), "wrong: {chain:#?}");
            if !(subject.among)(chain) {
                continue;
            }
            self.samples += chain.count;
            for (count, share) in self.of.iter_mut().zip(&subject.shares) {
                if (share.has)(chain) {
                    *count += chain.count;
                }
            }
            if let Some(bill) = &subject.bill {
                let account = chain.account.context("on no account")?;
                let account = &report.accounts[account];
                let payer = (bill.payer)(chain);
                ensure!(
                    is_of(account, pids[payer]) || account.who == "clients that are not known",
                    "{} must pay, not {}: {chain:#?}",
                    subject.programs[payer],
                    account.who
                );
            }
        }
        if let Some(bill) = &subject.bill {
            self.charge(report, bill, pids);
        }
        Ok(())
    }

    /// What is said of its shares.
    pub fn of_shares<'a>(&self, subject: &'a Subject) -> Vec<Comparison<'a>> {
        let shares = subject.shares.iter().zip(&self.of);
        shares
            .map(|(share, &count)| Comparison::new(share, self.samples, count))
            .collect()
    }

    /// What is said of its bill.
    pub fn of_bill<'a>(&self, subject: &'a Subject) -> Vec<Comparison<'a>> {
        let shares = subject.bill.iter().flat_map(|bill| &bill.shares);
        shares
            .zip(&self.items)
            .map(|((item, truth), &count)| Comparison {
                part: item.name,
                truth: *truth..=*truth,
                samples: self.charged,
                count,
            })
            .collect()
    }

    /// Adds what the accounts come to.
    fn charge(&mut self, report: &Report, bill: &Bill, pids: &[u64]) {
        let part = |item: &Item| {
            let mut accounts = report.accounts.iter();
            let account = accounts.find(|account| is_of(account, pids[item.program]));
            account.map_or(0, item.of)
        };
        self.charged += bill.whole.iter().map(part).sum::<u64>();
        for (count, (item, _)) in self.items.iter_mut().zip(&bill.shares) {
            *count += part(item);
        }
    }

    /// Decided by the number of samples alone, so that it favours no outcome.
    fn are_enough(&self, subject: &Subject, source: &Source) -> bool {
        self.samples >= source.samples
            && subject
                .shares
                .iter()
                .all(|share| bound::is_narrow(self.samples, *share.truth.start(), source.points))
    }
}

/// Whether an account is that of this process.
fn is_of(account: &Account, pid: u64) -> bool {
    account.who.ends_with(&format!(" (pid {pid})"))
}
