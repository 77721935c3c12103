//! What the machine's processors are, and which source of samples they give: the text of `lscpu`.
//!
//! CPUID's answers ([`leaves`]) are read on each CPU, since parts with two kinds of cores answer differently on each. The verdicts on counters,
//! the source, and whether programs can read kernel memory are the kernel's: nothing of that is decided here a second time. What a CPU says
//! nothing of has no row.

mod caches;
pub mod leaves;
mod rows;
mod topology;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ipc::abi::monitor::{Interface, MonitorInfo, Verdict};
use ipc::abi::profile::Source;

use crate::header;
use crate::text::Lines;
use leaves::Leaves;
use rows::{Fact, Row};

/// Columns of a row's name.
const NAME_COLUMNS: usize = 12;

/// One CPU.
#[derive(Clone, Debug)]
pub struct Cpu<'a> {
    /// What CPUID answers there.
    pub leaves: &'a Leaves,
    /// What its performance monitor claims, and what became of that.
    pub monitor: MonitorInfo,
}

/// All of them, and what holds for all.
#[derive(Clone, Debug)]
pub struct Processors<'a> {
    /// By number.
    pub cpus: Vec<Cpu<'a>>,
    /// What samples if no source is asked for; `None` if the driver does not say.
    pub best: Option<Source>,
    /// Programs can read kernel memory (Meltdown).
    pub exposed: bool,
}

impl Processors<'_> {
    /// The text: a row for each fact, and where CPUs differ, one for each set of CPUs that agree. `verbose` adds registers and leaves.
    #[must_use]
    pub fn text(&self, verbose: bool) -> String {
        let mut lines = Lines::default();
        let topology = topology::of(self.cpus.iter().map(|cpu| cpu.leaves));
        write(&mut lines, "cpus", &topology);
        self.merge(rows::identity, &mut lines);
        if self.exposed {
            write(&mut lines, "meltdown", rows::MELTDOWN);
        }
        self.merge(rows::monitor, &mut lines);
        if let Some(best) = self.best {
            write(&mut lines, "source", &self.source(best));
        }
        if verbose {
            self.merge(rows::registers, &mut lines);
            self.merge(rows::leaves, &mut lines);
        }
        lines.finish()
    }

    /// What would sample, in a report's words.
    fn source(&self, best: Source) -> String {
        if best == Source::Tick {
            return format!("{} only", best.name());
        }
        let counts = |cpu: &&Cpu<'_>| {
            let interface = Interface::from_raw(cpu.monitor.interface);
            let is_it = interface.and_then(Interface::source) == Some(best);
            is_it && cpu.monitor.verdict == Verdict::Works as u64
        };
        let counting = self.cpus.iter().filter(counts).count();
        let others = match best {
            Source::PmuIntel | Source::PmuAmd | Source::PmuAmdV2 => self.cpus.len() - counting,
            Source::TimerNmi | Source::Tick => 0,
        };
        header::sources(best, counting as u64, others as u64)
    }

    /// Writes the rows that CPUs have, each once for all CPUs that agree on it, in the order in which they have them.
    fn merge(&self, rows: fn(&Cpu<'_>) -> Vec<Row>, lines: &mut Lines) {
        let all: Vec<Vec<Row>> = self.cpus.iter().map(rows).collect();
        for fact in facts(&all) {
            for (row, cpus) in agreed(&all, fact) {
                let who = match cpus.len() == all.len() {
                    true => String::new(),
                    false => format!("cpu {}: ", ranges(&cpus)),
                };
                let key = match row.key.as_str() {
                    "" => String::new(),
                    key => format!("{key} "),
                };
                write(lines, row.name, &format!("{who}{key}{}", row.value));
            }
        }
    }
}

/// What CPUs have rows of: those of the first in their order, and what others have besides behind what it is behind there.
fn facts(all: &[Vec<Row>]) -> Vec<Fact<'_>> {
    let mut facts = Vec::new();
    for rows in all {
        let mut at = 0;
        for fact in rows.iter().map(Row::fact) {
            match facts.iter().position(|&other| other == fact) {
                Some(found) => at = found,
                None => facts.insert(at, fact),
            }
            at += 1;
        }
    }
    facts
}

/// The rows of a fact, each once, with the numbers of the CPUs that have it.
fn agreed<'a>(all: &'a [Vec<Row>], fact: Fact<'_>) -> Vec<(&'a Row, Vec<usize>)> {
    let mut groups: Vec<(&Row, Vec<usize>)> = Vec::new();
    for (cpu, rows) in all.iter().enumerate() {
        let Some(row) = rows.iter().find(|row| row.fact() == fact) else {
            continue;
        };
        match groups.iter_mut().find(|(other, _)| *other == row) {
            Some((_, cpus)) => cpus.push(cpu),
            None => groups.push((row, [cpu].into())),
        }
    }
    groups
}

fn write(lines: &mut Lines, name: &str, value: &str) {
    lines.wrap(&format!("{name:<NAME_COLUMNS$}{value}"));
}

/// Numbers in ascending order, those in a row as first and last: `0-3,6`.
fn ranges(numbers: &[usize]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in numbers.chunk_by(|a, b| a + 1 == *b) {
        parts.push(match part {
            [first, .., last] => format!("{first}-{last}"),
            [only] => only.to_string(),
            [] => continue,
        });
    }
    parts.join(",")
}
