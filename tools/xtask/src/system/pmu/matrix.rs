//! Each interface, with counters that are good and with counters that lie in each way: which source samples then, and what became
//! of each interrupt. The shim's record says how many NMIs there were, and the report how many were taken: both are the same, to the last one.
//!
//! Time is counted in instructions: where the host may keep a CPU from running, a counter may rightly be found out to interrupt too late.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use ipc::abi::monitor::Verdict as Proof;
use ipc::abi::monitor::register::{Named, Registers};
use pmu_model::setup::Mode;

use crate::system::lscpu::Processors;
use crate::system::report::{Fates, Report};
use crate::system::session::Session;
use crate::test::{Context, Verdict};

use super::machine::{Machine, Tally, Time};

/// How the counters are, in the shim's words, and what must come of it.
const MODES: [(&str, Outcome); 9] = [
    ("good", Outcome::Exact),
    ("dropping", Outcome::Dropped),
    ("late", Outcome::Late),
    ("swallowing", Outcome::Unused(Proof::StandsStill)),
    ("latched", Outcome::Unused(Proof::StandsStill)),
    ("absurd", Outcome::Unused(Proof::Implausible)),
    ("silent", Outcome::Unused(Proof::Silent)),
    ("blank", Outcome::Unused(Proof::Misreports)),
    ("faulting", Outcome::Unused(Proof::Faults)),
];

/// What comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Every interrupt is a sample.
    Exact,
    /// Every interrupt that is not lost is a sample, and those that are lost do not stop it.
    Dropped,
    /// Every interrupt that is the first of its overflow is a sample, and the others are told to be late.
    Late,
    /// The counter is found out, and another source samples.
    Unused(Proof),
}

impl Outcome {
    /// What the proof at boot finds.
    const fn proof(self) -> Proof {
        match self {
            Self::Unused(proof) => proof,
            Self::Exact | Self::Dropped | Self::Late => Proof::Works,
        }
    }
}

/// Milliseconds of a window: enough for three of a hundred interrupts.
const WINDOW: u64 = 400;

/// Microseconds that a proof takes at most: 10 in which the counter must count, 100 over which its rate is measured, 1,000 in which its interrupt must
/// arrive, and what the shim takes for accesses to registers.
const PROOF_MAX: u64 = 1_250;

/// All modes of an interface on one CPU. `source` is the long name of what samples by it. The table is left in `target/pmu-intel.txt` and
/// its like.
///
/// # Errors
/// What is not as it must be.
pub fn modes(context: &Context<'_>, interface: &str, source: &str) -> Verdict {
    let mut table = Table::new(interface);
    for (mode, outcome) in MODES {
        let counters = format!("{interface}:{mode}");
        let source = match outcome {
            // The only timer that sends one CPU NMIs is the shim's.
            Outcome::Unused(_) => "tick",
            _ => source,
        };
        let sampled = sample(context, &counters, 1, outcome.proof());
        let (report, tally) = sampled.with_context(|| counters.clone())?;
        table.row(mode, 1, outcome.proof(), (&report, &tally));
        table.keep(context, &format!("pmu-{interface}.txt"))?;
        ensure!(report.source == source, "{counters}: {report:?}");
        check(outcome, &report, &tally).context(counters)?;
    }
    Ok(())
}

/// What came of each mode, for people.
struct Table<'a> {
    interface: &'a str,
    text: String,
}

impl<'a> Table<'a> {
    fn new(interface: &'a str) -> Self {
        let text = "INTERFACE  MODE        CPUS  THE PROOF SAYS            SOURCE                    TAKEN  NMIS  DROPPED  AGAIN  LATE  MISSED\n";
        Self {
            interface,
            text: text.into(),
        }
    }

    fn row(&mut self, mode: &str, cpus: u32, proof: Proof, (report, tally): (&Report, &Tally)) {
        let words = format!(
            "{:<10} {mode:<11} {cpus:>4}  {:<25} {:<25}",
            self.interface,
            proof.text(),
            report.source,
        );
        let numbers = format!(
            "{:>5} {:>5} {:>8} {:>6} {:>5} {:>7}\n",
            report.fates().taken,
            tally.counter(),
            tally.dropped,
            tally.late,
            odd(report, "late"),
            odd(report, "missed"),
        );
        self.text += &format!("{words} {numbers}");
    }

    fn keep(&self, context: &Context<'_>, name: &str) -> Verdict {
        Ok(fs::write(context.workspace.target.join(name), &self.text)?)
    }
}

/// Good counters on 4 CPUs. Those take turns: one that waits for its turn gets its NMI late, but none stops.
///
/// # Errors
/// What is not as it must be.
pub fn all_cpus(context: &Context<'_>, interface: &str, source: &str) -> Verdict {
    let (report, tally) = sample(context, interface, 4, Proof::Works)?;
    let mut table = Table::new(interface);
    table.row("good", 4, Proof::Works, (&report, &tally));
    table.keep(context, &format!("pmu-{interface}-on-4-cpus.txt"))?;
    ensure!(report.source == source && report.cpus == 4, "{report:?}");
    exact(&report, &tally)?;
    let mut busy = tally.counters.iter().take(4);
    ensure!(busy.all(|&nmis| nmis >= WINDOW / 2), "{tally:?}");
    ensure!(
        odd(&report, "missed") == 0 && tally.sent == 0,
        "{tally:?}, {report:?}"
    );
    Ok(())
}

/// Counters that lie on 4 CPUs, which can sample each other.
///
/// # Errors
/// What is not as it must be.
pub fn neighbours(context: &Context<'_>, counters: &str, proof: Proof) -> Verdict {
    let (report, tally) = sample(context, counters, 4, proof)?;
    ensure!(
        report.source == "timer/nmi" && report.cpus == 4,
        "{report:?}"
    );
    ensure!(tally.counter() == 0, "{tally:?}");
    exact(&report, &tally)
}

/// Counters of which those of the first 2 CPUs are good: each CPU is sampled by what works for it.
///
/// # Errors
/// What is not as it must be.
pub fn half(context: &Context<'_>, counters: &str, source: &str) -> Verdict {
    let (report, tally) = sample(context, counters, 4, Proof::Works)?;
    let sources = format!("{source} on 2 cpus, timer/nmi on 2");
    ensure!(report.source == sources && report.cpus == 4, "{report:?}");
    exact(&report, &tally)?;
    let [first, second, rest @ ..] = tally.counters;
    ensure!(first.min(second) >= WINDOW / 2, "{tally:?}");
    ensure!(
        rest.iter().sum::<u64>() == 0 && tally.sent >= WINDOW,
        "{tally:?}"
    );
    Ok(())
}

/// Takes a profile of busy CPUs. What the shim has recorded meanwhile. The first CPU must have found this of its counters; where they do not
/// work, that is why they are refused.
fn sample(
    context: &Context<'_>,
    counters: &str,
    smp: u32,
    proof: Proof,
) -> Result<(Report, Tally)> {
    let mut machine = Machine::boot(context, counters, smp, Time::Counted)?;
    let log = machine.session.run("dmesg claims")?.replace("\n  ", " ");
    ensure!(log.contains(proof.text()), "{log}");
    if smp == 1 {
        // Of several CPUs one may have had to wait for its turn.
        let micros = proved_in(&mut machine.session)?;
        ensure!(micros <= PROOF_MAX, "{counters}: {micros} us");
    }
    if proof != Proof::Works {
        let why = ["profile: source pmu: cpu 0 claims ", proof.text()];
        let refusal = machine.session.run("profile 100 all 8 source pmu")?;
        let is_told = why.iter().all(|part| refusal.contains(part));
        ensure!(is_told, "{refusal}");
    }
    let processors = Processors::ask(&mut machine.session)?;
    for _ in 0..smp {
        // It pauses now and then, or the other CPUs had no turn.
        machine.session.start("shares 100")?;
    }
    let before = machine.tally()?;
    let report = machine.session.profile(&format!("{WINDOW} all 20 -v"))?;
    let tally = machine.tally()?.since(before);
    machine.power_off()?;
    told(&processors, counters, proof, &report)?;
    Ok((report, tally))
}

/// The registers of global control.
const CONTROLS: [Registers; 2] = [Registers::INTEL_CONTROL, Registers::AMD_CONTROL];

/// What `lscpu` said before: what the proof found, by which registers, and the source that sampled then.
fn told(processors: &Processors, counters: &str, proof: Proof, report: &Report) -> Verdict {
    let text = processors.text();
    let is_found = processors
        .rows("counters")
        .any(|row| row.contains(proof.text()));
    ensure!(is_found && processors.source()? == report.source, "{text}");
    let registers = processors.rows("register").count();
    ensure!((registers >= 2) == (proof != Proof::Faults), "{text}");
    if proof == Proof::Works {
        // A counter that counts is on in the global control, where there is one.
        let names = CONTROLS.map(|control| Named(control.number(0).into()).to_string());
        let is_control = |row: &&str| names.iter().any(|name| row.contains(name));
        let controls: Vec<_> = processors.rows("register").filter(is_control).collect();
        let has_control = counters.split(':').next() != Some("amd");
        ensure!(controls.is_empty() != has_control, "{text}");
        let is_off = |row: &&str| row.ends_with(" 0x0000000000000000");
        ensure!(!controls.iter().any(is_off), "{text}");
    }
    let is_measured = processors.rows("rate").count() > 0;
    let counts = matches!(proof, Proof::Works | Proof::Silent | Proof::Misreports);
    ensure!(is_measured == counts, "{text}");
    Ok(())
}

/// Microseconds that the proof of a counter took, as the kernel's log says.
fn proved_in(session: &mut Session) -> Result<u64> {
    let log = session.run("dmesg proof")?;
    let line = log.split_once("a proof took ");
    let micros = line.and_then(|(_, rest)| rest.split_once(" us")?.0.parse().ok());
    micros.with_context(|| format!("no time of a proof: {log}"))
}

fn check(outcome: Outcome, report: &Report, tally: &Tally) -> Verdict {
    if let Outcome::Unused(_) = outcome {
        ensure!(*tally == Tally::default(), "{tally:?}");
        ensure!(report.samples > 0, "{report:?}");
        return Ok(());
    }
    exact(report, tally)?;
    // An interval is anything from half a period to three halves: the number in a window varies by the root of a twelfth of it, of which
    // six are one chance in five hundred million. What an interrupt takes is not counted by the counter.
    let fewest = WINDOW - 6 * (WINDOW / 12).isqrt() - WINDOW / 20;
    let wrong = (tally.counter() + tally.dropped) / Mode::ONE_IN;
    let (dropped, late) = match outcome {
        Outcome::Dropped => (wrong, 0),
        Outcome::Late => (0, wrong),
        Outcome::Exact | Outcome::Unused(_) => (0, 0),
    };
    ensure!((tally.dropped, tally.late) == (dropped, late), "{tally:?}");
    // A tick finds out that one was lost: 10 ms, and as many samples, are missed at most, and the one that was lost.
    let missed = odd(report, "missed");
    ensure!((dropped..=dropped * 16).contains(&missed), "{report:?}");
    ensure!(report.samples + missed >= fewest, "{report:?}");
    Ok(())
}

/// Each NMI is a sample or late, and there are no others. The last one of a run may come once its source is stopped.
fn exact(report: &Report, tally: &Tally) -> Verdict {
    let Fates { taken, dropped, .. } = report.fates();
    let late = odd(report, "late");
    let is_exact = dropped == 0 && taken + late == tally.nmis();
    ensure!(is_exact, "{tally:?}, {report:?}");
    let at_the_end = late.checked_sub(tally.late);
    let are_few = at_the_end.is_some_and(|late| late <= report.cpus);
    ensure!(are_few, "{tally:?}, {report:?}");
    Ok(())
}

fn odd(report: &Report, name: &str) -> u64 {
    report.odd.get(name).copied().unwrap_or_default()
}
