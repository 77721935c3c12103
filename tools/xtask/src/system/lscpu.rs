//! `lscpu`: what it says of processors of several kinds, and that it names the source that `profile` then uses.

use anyhow::{Context as _, Result, ensure};

use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::calm::until;
use super::pmu::claims::LIAR;
use super::profd::nmis;
use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("lscpu_of_intel_processors", || {
            INTEL.iter().try_for_each(|model| told(context, model))
        }),
        Case::new("lscpu_of_amd_processors", || {
            AMD.iter().try_for_each(|model| told(context, model))
        }),
        Case::new("lscpu_while_a_profile_runs_on_busy_cpus", || busy(context)),
    ]
}

/// A model of the emulator's, how many CPUs and how they are arranged, and rows that it must have.
struct Model {
    name: &'static str,
    cpus: u32,
    shape: &'static str,
    rows: &'static [(&'static str, &'static str)],
}

/// All of them vulnerable to Meltdown.
const INTEL: [Model; 2] = [
    Model {
        name: "Skylake-Server",
        cpus: 4,
        shape: "sockets=1,cores=2,threads=2",
        rows: &[
            ("cpus", "4 threads, 2 cores, 1 package"),
            ("vendor", "GenuineIntel"),
            ("model", "family 6, model 85, stepping 4"),
            ("brand", "Intel Xeon Processor (Skylake)"),
            ("counters", "claims no counters that the profiler can use"),
        ],
    },
    // From before there were leaves of the topology.
    Model {
        name: "core2duo",
        cpus: 4,
        shape: "sockets=2,cores=2,threads=1",
        rows: &[
            ("cpus", "4 threads, 4 cores, 2 packages"),
            ("vendor", "GenuineIntel"),
            ("model", "family 6, model 15, stepping 11"),
            ("features", "NX"),
        ],
    },
];

const AMD: [Model; 3] = [
    Model {
        name: LIAR,
        cpus: 4,
        shape: "sockets=2,cores=1,threads=2",
        rows: &[
            ("cpus", "4 threads, 2 cores, 2 packages"),
            ("vendor", "AuthenticAMD"),
            ("model", "family 25, model 1, stepping 1"),
            ("monitor", "version 1, 6 counters of 48 bits"),
            ("counters", "claims AMD core counters; they do not count"),
        ],
    },
    Model {
        name: "phenom",
        cpus: 4,
        shape: "sockets=2,cores=2,threads=1",
        rows: &[
            ("cpus", "4 threads, 4 cores, 2 packages"),
            ("vendor", "AuthenticAMD"),
            ("brand", "AMD Phenom(tm) 9550 Quad-Core Processor"),
        ],
    },
    Model {
        name: "max",
        cpus: 3,
        shape: "sockets=1,cores=3,threads=1",
        rows: &[
            ("cpus", "3 threads, 3 cores, 1 package"),
            ("vendor", "AuthenticAMD"),
            ("hypervisor", "TCGTCGTCGTCG"),
        ],
    },
];

/// What `lscpu` printed.
pub struct Processors(String);

impl Processors {
    /// Asks, with registers and leaves, and without.
    ///
    /// # Errors
    /// They do not agree, or do not fit a terminal.
    pub fn ask(session: &mut Session) -> Result<Self> {
        let text = session.run("lscpu")?;
        let all = session.run("lscpu -v")?;
        ensure!(all.starts_with(&text), "{text}\nbut with -v:\n{all}");
        ensure!(all.lines().all(|line| line.len() <= 80), "{all}");
        ensure!(all.contains("\ncpuid       0x00000000 0 0x"), "{all}");
        Ok(Self(all.replace("\n  ", " ")))
    }

    /// The rows of this name.
    pub fn rows<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let rows = self.0.lines().filter_map(|line| line.split_once(' '));
        let named = rows.filter(move |(first, _)| *first == name);
        named.map(|(_, value)| value.trim_start())
    }

    /// The source that `profile` uses.
    ///
    /// # Errors
    /// None is named.
    pub fn source(&self) -> Result<&str> {
        let source = self.rows("source").next();
        let source = source.with_context(|| self.0.clone())?;
        Ok(source.strip_suffix(" only").unwrap_or(source))
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.0
    }
}

fn told(context: &Context<'_>, model: &Model) -> Verdict {
    let options = BootOptions {
        cpu: model.name.into(),
        smp: model.cpus,
        qemu_args: vec!["-smp".into(), model.shape.into()],
        ..BootOptions::default()
    };
    let mut session = Session::boot(context, options)?;
    let processors = Processors::ask(&mut session)?;
    for (name, value) in model.rows {
        let rows: Vec<&str> = processors.rows(name).collect();
        ensure!(rows == [*value], "{}", processors.text());
    }
    // The log says the same, of what the kernel alone can know.
    let log = session.run("dmesg")?.replace("\n  ", " ");
    let is_exposed = log.contains("(Meltdown)");
    let is_told = processors.rows("meltdown").count() == 1;
    let is_intel = processors.rows("vendor").eq(["GenuineIntel"]);
    ensure!([is_told, is_exposed] == [is_intel; 2], "{log}");
    for verdict in processors.rows("counters") {
        ensure!(log.contains(&format!("cpu 0: {verdict}\n")), "{log}");
    }
    let report = session.profile("100")?;
    ensure!(report.source == processors.source()?, "{report:?}");
    session.power_off()
}

/// It takes a turn of each CPU, of which none has time, and profd measures meanwhile.
fn busy(context: &Context<'_>) -> Verdict {
    let options = BootOptions {
        smp: 2,
        ..BootOptions::default()
    };
    let mut session = Session::boot_image(context.test_image()?, options)?;
    let idle = nmis(&mut session)?;
    let pids = ["spin", "spin", "spin", "asker"].map(|program| session.start(program));
    let measures = |session: &mut Session, before: &[u64]| {
        until(session, |session| {
            let now = nmis(session)?;
            ensure!(now != before, "no samples are taken: {now:?}");
            Ok(())
        })
    };
    measures(&mut session, &idle)?;
    let processors = Processors::ask(&mut session)?;
    // Who asked for the profile is not disturbed.
    let before = nmis(&mut session)?;
    measures(&mut session, &before)?;
    for pid in pids {
        session.run(&format!("kill {}", pid?))?;
    }
    // The one that was asked for by who is gone now may still have to end.
    until(&mut session, |session| {
        let report = session.profile("100")?;
        ensure!(report.source == processors.source()?, "{report:?}");
        Ok(())
    })?;
    session.power_off()
}
