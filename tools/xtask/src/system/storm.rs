//! A storm of NMIs: the program `storm` of the test archive asks for samples as fast as the machine delivers them, while processes come and
//! go, and judges every one. Then nothing may be left of it.

use std::fs;

use anyhow::{Result, ensure};

use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::calm::Calm;
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
    ]
}

/// How a storm is made.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// What it is called.
    pub name: &'static str,
    /// Whether a nanosecond is an instruction.
    icount: bool,
    /// Milliseconds of the short form, and of the long one.
    short: u64,
    /// See `short`.
    pub long: u64,
}

/// CPUs that run beside each other: whatever may happen between two instructions of two CPUs happens. How many NMIs come is the
/// host's matter, which delivers timers when it gets to it.
pub const PARALLEL: Kind = Kind {
    name: "parallel",
    icount: false,
    short: 10_000,
    long: 60_000,
};
/// CPUs that take turns, in time that is counted in instructions: an NMI comes as soon as the CPU that it goes to has its turn, so there
/// are as many as the machine can take.
pub const COUNTED: Kind = Kind {
    name: "counted",
    icount: true,
    short: 1_500,
    long: 10_000,
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
    let options = BootOptions {
        smp,
        icount: kind.icount,
        ..BootOptions::default()
    };
    let mut session = Session::boot_image(context.test_image()?, options)?;
    // What servers make when they are first used is made.
    session.profile("10")?;
    session.run("run storm 10 1")?;
    let before = Calm::of(&mut session)?;
    let said = session.run(&format!("run storm {ms} {seed}"))?;
    ensure!(
        said.contains(" 0 wrong\n") && !said.contains("storm: "),
        "{said}"
    );
    before.again(&mut session)?;
    session.profile("10")?;
    session.power_off()?;
    Ok(said)
}
