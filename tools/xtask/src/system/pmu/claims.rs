//! What processors claim that the emulator has: one lies about its counters, and the others have none.

use anyhow::{Result, ensure};

use crate::cli::BootOptions;
use crate::test::{Context, Verdict};

use crate::system::session::Session;

/// Core counters whose registers read zero and swallow what is written, as everything does that the emulator does not know.
pub const LIAR: &str = "EPYC-Milan,+perfctr-core,x-force-features=on";
/// Without any.
pub const NONE: [&str; 2] = ["Skylake-Server", "EPYC-Milan"];

/// A model that claims counters is not believed, and says why it has none. On one CPU and on more.
///
/// # Errors
/// It is believed.
pub fn liar(context: &Context<'_>) -> Verdict {
    for smp in [1, 2] {
        refused(
            context,
            LIAR,
            smp,
            "claims AMD core counters; they do not count",
        )?;
    }
    Ok(())
}

/// Models of both makers that claim nothing.
///
/// # Errors
/// A counter is found all the same.
pub fn none(context: &Context<'_>) -> Verdict {
    for model in NONE {
        refused(
            context,
            model,
            2,
            "claims no counters that the profiler can use",
        )?;
    }
    Ok(())
}

/// The machine says so, the counter that is asked for is refused for this reason, and the timer is the best that there is.
fn refused(context: &Context<'_>, model: &str, smp: u32, why: &str) -> Verdict {
    let mut session = boot(context, model, smp)?;
    let log = session.run("dmesg")?.replace("\n  ", " ");
    ensure!(log.contains(&format!("cpu 0: {why}")), "{model}: {log}");
    let refusal = session.run("profile 100 all 8 source pmu")?;
    let expected = format!("profile: source pmu: cpu 0 {why}\n");
    ensure!(refusal == expected, "{model}: {refusal}");
    let report = session.profile("200")?;
    ensure!(report.source == "timer/nmi", "{model}: {report:?}");
    session.power_off()
}

fn boot(context: &Context<'_>, model: &str, smp: u32) -> Result<Session> {
    let options = BootOptions {
        cpu: model.into(),
        smp,
        ..BootOptions::default()
    };
    Session::boot(context, options)
}
