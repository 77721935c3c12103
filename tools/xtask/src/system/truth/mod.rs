//! Whether `profile` tells the truth, of programs of which is known where their time goes.
//!
//! [`shares`] asks on a machine that runs as fast as it can. The others run where QEMU counts instructions, and one instruction is a
//! nanosecond: there a share of the instructions is exactly a share of the time, however busy the host is. QEMU then runs one CPU at a
//! time, and gives the turn away only at a deadline, at I/O, or when the CPU pauses or halts; so the programs pause often
//! (`truth::let_others_run`).
//!
//! Each comparison is repeated with a planted error: the same counts, held to a share that is wrong. It must fail.

mod bound;
mod chain;
mod churn;
mod shares;
mod subject;
mod table;

use anyhow::{Context as _, Result, bail, ensure};

use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::report::Report;
use super::session::Session;
use subject::{Share, Subject};
use table::Table;

/// Samples that a subject must have, at least.
const SAMPLES: u64 = 2000;
/// Windows of two seconds that must be enough for them and for a narrow bound, also where a program has half of one CPU.
const WINDOWS: usize = 12;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    let mut cases = shares::cases(context);
    cases.extend([
        Case::new("truth_on_1_cpu", || truth(context, 1)),
        Case::new("truth_on_4_cpus", || truth(context, 4)),
    ]);
    cases.extend(churn::cases(context));
    cases
}

/// What the samples of a subject were.
struct Counts {
    samples: u64,
    /// Of each share.
    of: Vec<u64>,
}

/// The machine that counts instructions.
fn boot(context: &Context<'_>, smp: u32) -> Result<Session> {
    let options = BootOptions {
        smp,
        icount: true,
        ..BootOptions::default()
    };
    Session::boot_image(context.truth_image()?, options)
}

fn truth(context: &Context<'_>, cpus: u32) -> Verdict {
    let mut session = boot(context, cpus)?;
    let mut table = Table::new(cpus);
    let mut subjects = subject::subjects(cpus);
    subjects.push(subject::mix(&session.run(subject::MEASURE)?)?);
    for subject in subjects {
        let held = hold(&mut session, &subject, &mut table);
        table.write(&context.workspace.target)?;
        held.context(subject.name)?;
    }
    blind_tick(&mut session)?;
    session.power_off()
}

/// Measures a subject, and holds the report to the truth, and to errors.
fn hold(session: &mut Session, subject: &Subject, table: &mut Table) -> Verdict {
    let counts = measure(session, subject, "timer")?;
    for (share, &count) in subject.shares.iter().zip(&counts.of) {
        let range = bound::believed(counts.samples, &share.truth);
        table.row(subject.name, share, counts.samples, count, &range);
        ensure!(
            range.contains(&count),
            "{} has {count} of {} samples; {range:?} would be true",
            share.name,
            counts.samples,
        );
        let wrong = bound::planted(*share.truth.start());
        ensure!(
            !bound::believed(counts.samples, &(wrong..=wrong)).contains(&count),
            "{} passes as {wrong}, too",
            share.name,
        );
    }
    if subject.shares.is_empty() {
        table.exact(subject.name, counts.samples);
    }
    Ok(())
}

/// Profiles a subject until there are enough samples.
fn measure(session: &mut Session, subject: &Subject, source: &str) -> Result<Counts> {
    let started = subject
        .programs
        .iter()
        .map(|program| session.start(program));
    let pids: Vec<u64> = started.collect::<Result<_>>()?;
    let only = match subject.only {
        Some(index) => pids[index].to_string(),
        None => "all".into(),
    };
    let line = format!("2000 {only} 512 depth 48 source {source}");
    let of = vec![0; subject.shares.len()];
    let mut counts = Counts { samples: 0, of };
    for _ in 0..WINDOWS {
        counts.add(&session.profile(&line)?, subject)?;
        if counts.are_enough(&subject.shares) {
            for pid in pids.iter().rev() {
                // What a program says at its end comes when it likes.
                session.settle(format!("kill {pid}\n").as_bytes())?;
            }
            return Ok(counts);
        }
    }
    bail!("{} samples are too few", counts.samples)
}

impl Counts {
    fn add(&mut self, report: &Report, subject: &Subject) -> Verdict {
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
        }
        Ok(())
    }

    /// Decided by the number of samples alone, so that it favours no outcome.
    fn are_enough(&self, shares: &[Share]) -> bool {
        self.samples >= SAMPLES
            && shares
                .iter()
                .all(|share| bound::is_narrow(self.samples, *share.truth.start()))
    }
}

/// The tick says that it cannot see the kernel, and shows none of the time that `truth-mix` is there.
fn blind_tick(session: &mut Session) -> Verdict {
    const SAYS: &str = "the tick cannot see inside the kernel";
    let pid = session.start("truth-mix")?;
    let text = session.expect(&format!("profile 2000 {pid} 512 source tick"), &[SAYS])?;
    let report = Report::parse(&text)?;
    let mut chains = report.chains.iter();
    ensure!(
        report.samples > 0 && chains.all(|chain| chain.image == "truth-mix"),
        "{report:?}"
    );
    session.run(&format!("kill {pid}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_comparisons_than_the_chance_is_divided_among() {
        let all: usize = [1, 2, 4]
            .into_iter()
            .map(|cpus| {
                let subjects = subject::subjects(cpus);
                let mix =
                    subject::mix("work 690000 make 260000 null 50000 around 4000 8000").unwrap();
                let shares = subjects.iter().chain([&mix]).map(|it| it.shares.len());
                shares.sum::<usize>()
            })
            .sum();
        assert!(all + shares::COMPARISONS <= bound::COMPARISONS, "{all}");
    }
}
