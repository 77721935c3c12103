//! A storm of NMIs: the program `storm` of the test archive asks for samples as fast as the machine delivers them, while
//! processes come and go, and judges every one. Then nothing may be left of it.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::calm::Calm;
use super::pmu::machine;
use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("storm_of_nmis_on_1_cpu", || short(context, &COUNTED, 1)),
        Case::new("storm_of_nmis_on_2_cpus", || short(context, &PARALLEL, 2)),
        Case::new("storm_of_nmis_on_4_cpus", || short(context, &PARALLEL, 4)),
        Case::new("storm_of_nmis_in_counted_time", || {
            short(context, &COUNTED, 4)
        }),
        Case::new("storm_of_nmis_on_slow_cpus", || short(context, &SLOW, 2)),
        Case::new("a_profile_of_slow_cpus_ends_and_says_so", || slow(context)),
        Case::new("storm_of_nmis_of_counters_on_1_cpu", || {
            short(context, &COUNTERS, 1)
        }),
        Case::new("storm_of_nmis_of_counters_on_2_cpus", || {
            short(context, &COUNTERS, 2)
        }),
    ]
}

/// CPUs that a long storm may have.
pub const SMP: [u32; 4] = [1, 2, 4, 4];

/// How a storm is made.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// What it is called.
    pub name: &'static str,
    time: Time,
    /// Milliseconds of the short form, and of the long one.
    short: u64,
    /// See `short`.
    pub long: u64,
    /// The counters that cause the NMIs, in the shim's words; without any, timers do.
    counters: Option<&'static str>,
}

/// What time is to the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Time {
    /// The host's.
    Real,
    /// A nanosecond is an instruction.
    Counted,
    /// An instruction takes [`SLOW_NS`].
    Slow,
}

impl Time {
    /// Options for a machine of so many CPUs.
    fn options(self, smp: u32) -> BootOptions {
        let slow = ["-icount", &format!("shift={}", SLOW_NS.ilog2())].map(str::to_owned);
        BootOptions {
            smp,
            icount: self != Self::Real,
            qemu_args: if self == Self::Slow {
                slow.to_vec()
            } else {
                Vec::new()
            },
            ..BootOptions::default()
        }
    }
}

/// Nanoseconds of an instruction of a slow CPU. So a sample takes longer than the time between two at the highest frequency, ten times as
/// long, and a fifth of that at a profile's.
const SLOW_NS: u64 = 256;

/// CPUs that run beside each other: whatever may happen between two instructions of two CPUs happens. How many NMIs come is the
/// host's matter, which delivers timers when it gets to it.
pub const PARALLEL: Kind = Kind {
    name: "parallel",
    time: Time::Real,
    short: 10_000,
    long: 60_000,
    counters: None,
};
/// CPUs that take turns, in time that is counted in instructions: an NMI comes as soon as the CPU that it goes to has its turn, so there
/// are as many as the machine can take.
pub const COUNTED: Kind = Kind {
    name: "counted",
    time: Time::Counted,
    short: 1_500,
    long: 10_000,
    counters: None,
};
/// The same on CPUs that could do nothing else if they took every sample that is asked of them.
pub const SLOW: Kind = Kind {
    name: "slow",
    time: Time::Slow,
    short: 1_500,
    long: 10_000,
    counters: None,
};
/// NMIs of counters, of which some come twice, so that the second finds nothing to do; or finds what is the next one's.
pub const COUNTERS: Kind = Kind {
    name: "counters",
    time: Time::Counted,
    short: 400,
    long: 1_000,
    counters: Some("intel:late"),
};

fn short(context: &Context<'_>, kind: &Kind, smp: u32) -> Verdict {
    let said = rage(context, kind, smp, kind.short, 1)?;
    let file = format!("storm-{}-{smp}-cpus.txt", kind.name);
    Ok(fs::write(context.workspace.target.join(file), said)?)
}

/// A storm of so many milliseconds, which are fewer than a guest may take to say anything. Gives what it counted, as printed.
///
/// # Errors
/// If anything is wrong or left over.
pub fn rage(context: &Context<'_>, kind: &Kind, smp: u32, ms: u64, seed: u64) -> Result<String> {
    let shim = |counters| machine::shim(context, counters, "storm");
    let options = BootOptions {
        shim: kind.counters.map(shim).transpose()?,
        ..kind.time.options(smp)
    };
    let source = if kind.counters.is_some() { "pmu" } else { "" };
    let mut session = Session::boot_image(context.test_image()?, options)?;
    // What servers make when they are first used is made.
    session.profile("10")?;
    storm(&mut session, 10, 1, source)?;
    let before = Calm::of(&mut session)?;
    let said = storm(&mut session, ms, seed, source)?;
    before.again(&mut session)?;
    session.profile("10")?;
    session.power_off()?;
    kind.check(&said, smp)?;
    Ok(said)
}

/// Has the program make a storm, and checks what it says of it.
fn storm(session: &mut Session, ms: u64, seed: u64, source: &str) -> Result<String> {
    let said = session.run(&format!("run storm {ms} {seed} {source}"))?;
    ensure!(
        said.contains(" 0 wrong\n") && !said.contains("storm: "),
        "{said}"
    );
    Ok(said)
}

impl Kind {
    /// Checks what each CPU counted: it was in samples for half of the time at most, so that nothing that runs with interrupts
    /// off takes more than twice as long as without them; and one that is slow was asked for more. Not in real time: a host that
    /// lets a CPU stand still in the middle of a sample makes it longer than can be made up for.
    fn check(&self, said: &str, smp: u32) -> Verdict {
        if self.time == Time::Real {
            return Ok(());
        }
        let cpus = said.lines().filter(|line| line.starts_with("cpu "));
        let mut checked = 0;
        for cpu in cpus {
            let permille = number_after(cpu, "time in samples: ")?;
            let throttled = number_after(cpu, "throttled ")?;
            ensure!(permille <= 500, "too much time in samples: {said}");
            ensure!(
                self.time != Time::Slow || throttled > 0,
                "no sample was too much: {said}"
            );
            checked += 1;
        }
        ensure!(checked == smp, "{said}");
        Ok(())
    }
}

/// At the usual rate samples take a good part of the time of such CPUs, and some are left out. All goes on, only slower.
fn slow(context: &Context<'_>) -> Verdict {
    let mut session = Session::boot(context, Time::Slow.options(2))?;
    let before = ticks(&mut session)?;
    let report = session.profile("1000 all 3")?;
    let after = ticks(&mut session)?;
    let throttled = report.odd.get("throttled");
    ensure!(
        report.profiled_ms == 1000 && report.asked_ms.is_none() && throttled.is_some(),
        "{report:?}"
    );
    let went_on = before.len() == 2
        && before
            .iter()
            .zip(&after)
            .all(|(before, after)| before < after);
    ensure!(went_on, "ticks: {before:?}, then {after:?}");
    // The next one does not have to wait for this one's end.
    session.profile("10")?;
    session.power_off()
}

/// Ticks of each CPU since boot.
fn ticks(session: &mut Session) -> Result<Vec<u64>> {
    let said = session.run("uptime")?;
    let cpus = said.lines().filter(|line| line.starts_with("cpu "));
    cpus.map(|cpu| number_after(cpu, "busy, ")).collect()
}

/// The number that stands behind these words in a line.
fn number_after(line: &str, words: &str) -> Result<u64> {
    let number = line.split_once(words).map(|(_, behind)| {
        let end = behind.find(|c: char| !c.is_ascii_digit());
        &behind[..end.unwrap_or(behind.len())]
    });
    let number = number.with_context(|| format!("no {words:?} in {line:?}"))?;
    Ok(number.parse()?)
}
