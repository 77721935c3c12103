//! Whether `profile` tells the truth, of programs of which is known where their time goes.
//!
//! [`shares`] asks on a machine that runs as fast as it can, and so does the tick of programs that nothing wakes: in counted time
//! such a program may be in step with it by accident. All others run where QEMU counts instructions, and one instruction is a
//! nanosecond: there a share of the instructions is exactly a share of the time, however busy the host is. QEMU then runs one CPU
//! at a time, and gives the turn away only at a deadline, at I/O, or when the CPU pauses or halts; so the programs pause, often
//! and evenly in all of their work (`truth::Turns`).
//!
//! Each comparison is repeated with a planted error: the same counts, held to a share that is wrong. It must fail.

mod bound;
mod chain;
mod churn;
mod comparison;
mod measure;
mod shares;
mod source;
mod subject;
mod table;

use anyhow::{Context as _, Result, ensure};

use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::report::Report;
use super::session::Session;
use comparison::Comparison;
use measure::{Counts, Place, measure};
use source::{NMI, Source, TICK};
use subject::Subject;
use table::Table;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    let mut cases = shares::cases(context);
    cases.extend([
        Case::new("truth_on_1_cpu", || truth(context, 1)),
        Case::new("truth_on_2_cpus", || truth(context, 2)),
        Case::new("truth_on_4_cpus", || truth(context, 4)),
    ]);
    cases.extend(churn::cases(context));
    cases
}

/// A machine that counts instructions.
fn boot(context: &Context<'_>, smp: u32) -> Result<Session> {
    start(context, smp, true)
}

fn start(context: &Context<'_>, smp: u32, icount: bool) -> Result<Session> {
    let options = BootOptions {
        smp,
        icount,
        ..BootOptions::default()
    };
    Session::boot_image(context.truth_image()?, options)
}

fn truth(context: &Context<'_>, cpus: u32) -> Verdict {
    let name = format!("truth-{cpus}-cpus.txt");
    let mut table = Table::new(context.workspace.target.join(name));
    for counted in [true, false] {
        let mut bench = Bench {
            session: start(context, cpus, counted)?,
            cpus,
            counted,
            table,
        };
        if counted {
            bench.in_counted_time()?;
        } else {
            bench.in_real_time()?;
        }
        bench.session.power_off()?;
        table = bench.table;
    }
    Ok(())
}

/// A machine on which subjects are measured.
struct Bench {
    session: Session,
    cpus: u32,
    /// Its time is counted in instructions.
    counted: bool,
    table: Table,
}

impl Bench {
    fn in_counted_time(&mut self) -> Verdict {
        let mix = subject::mix(&self.session.run(subject::MEASURE)?)?;
        let lockstep = subject::in_step(self.cpus);
        let (short_lived, asleep) = (subject::short_lived(), subject::asleep(self.cpus));
        for subject in &subject::in_loops(self.cpus) {
            self.hold(subject, &NMI)?;
        }
        for subject in &subject::in_calls() {
            self.hold(subject, &NMI)?;
        }
        for subject in [&short_lived, &lockstep, &mix] {
            self.hold(subject, &NMI)?;
        }
        for subject in [&short_lived, &asleep] {
            self.hold(subject, &TICK)?;
        }
        self.is_fooled(&lockstep)?;
        self.is_blind(&mix)
    }

    fn in_real_time(&mut self) -> Verdict {
        for subject in &subject::in_loops(self.cpus) {
            self.hold(subject, &TICK)?;
        }
        Ok(())
    }

    /// Measures a subject. Of two CPUs that take turns, the first is not seen where it cannot pause (docs/profiler.md, "Truth tests").
    fn measure(&mut self, subject: &Subject, source: &Source) -> Result<Counts> {
        let place = Place {
            counted: self.counted,
            hides: self.counted && self.cpus == 2 && subject.cannot_pause,
        };
        let measured = measure(&mut self.session, subject, source, place);
        measured.with_context(|| format!("{} by {}", subject.name, source.name))
    }

    /// Measures a subject, and holds the report to the truth, and to errors.
    fn hold(&mut self, subject: &Subject, source: &Source) -> Verdict {
        let counts = self.measure(subject, source)?;
        let mut comparisons = counts.of_shares(subject);
        comparisons.extend(counts.of_bill(subject));
        for comparison in &comparisons {
            self.table.row(subject.name, source, comparison, "")?;
            comparison.judge(source).context(subject.name)?;
        }
        if comparisons.is_empty() {
            self.table.exact(subject.name, source, counts.samples)?;
        }
        Ok(())
    }

    /// The tick shows a wrong share of what is in step with it: none, or too much.
    fn is_fooled(&mut self, subject: &Subject) -> Verdict {
        let counts = self.measure(subject, &TICK)?;
        for it in counts.of_shares(subject) {
            let remark = ": wrong, in step";
            self.table.row(subject.name, &TICK, &it, remark)?;
            ensure!(
                !it.believed().contains(&it.count),
                "{} is shown as it is, in step with the tick",
                it.part
            );
        }
        Ok(())
    }

    /// The tick says that it cannot see the kernel, and shows none of the time that a program is there.
    fn is_blind(&mut self, subject: &Subject) -> Verdict {
        const SAYS: &str = "the tick cannot see inside the kernel";
        let pid = self.session.start(&subject.programs[0])?;
        let line = format!("profile 2000 {pid} 512 source tick");
        let report = Report::parse(&self.session.expect(&line, &[SAYS])?)?;
        let in_kernel = report.chains.iter().filter(|it| it.image == "kernel");
        let count = in_kernel.map(|chain| chain.count).sum();
        for share in &subject.shares[1..] {
            let it = Comparison::new(share, report.samples, count);
            let remark = ": blind, and says so";
            self.table.row(subject.name, &TICK, &it, remark)?;
        }
        ensure!(report.samples > 0 && count == 0, "{report:?}");
        self.session.run(&format!("kill {pid}"))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum<'a>(subjects: impl Iterator<Item = &'a Subject>) -> usize {
        subjects.map(Subject::comparisons).sum()
    }

    #[test]
    fn there_are_no_more_comparisons_than_the_chance_is_divided_among() {
        let of_machine = |cpus| {
            let mix = subject::mix("work 690000 make 260000 null 50000 around 4000 8000").unwrap();
            let loops = subject::in_loops(cpus);
            let short_lived = subject::short_lived();
            // By NMI, and by the tick; the others by one of them, or in a way that is no comparison by the other.
            let both = 2 * sum(loops.iter().chain([&short_lived]));
            let lockstep = subject::in_step(cpus);
            let calls = subject::in_calls();
            both + sum(calls
                .iter()
                .chain([&lockstep, &mix, &subject::asleep(cpus)]))
        };
        let all: usize = [1, 2, 4].into_iter().map(of_machine).sum();
        assert!(all + shares::COMPARISONS <= bound::COMPARISONS, "{all}");
    }
}
