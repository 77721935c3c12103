//! Performance counters where the emulator has none: the shim (`tests/pmu-shim`) runs the shipped kernel as its guest.

pub mod claims;
mod idle;
pub mod machine;
mod matrix;
mod tardy;

use anyhow::ensure;
use ipc::abi::monitor::Verdict as Proof;

use crate::test::{Case, Context, Verdict};

use machine::{Machine, Tally, Time};

const INTEL: &str = "pmu/nmi intel fixed-ctr1";
const AMD: &str = "pmu/nmi amd ctr0";
const AMD_V2: &str = "pmu/nmi amd ctr0 v2";
/// What the log says where neither a counter nor a timer gives NMIs, and only there.
const TICK: &str = "samples come from the tick";

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("pmu_liar_is_not_believed", || claims::liar(context)),
        Case::new("pmu_none_is_claimed", || claims::none(context)),
        Case::new("pmu_shim_boots_1_cpu", || boots(context, 1, "tick")),
        Case::new("pmu_shim_boots_4_cpus", || boots(context, 4, "timer/nmi")),
        Case::new("pmu_intel", || matrix::modes(context, "intel", INTEL)),
        Case::new("pmu_amd", || matrix::modes(context, "amd", AMD)),
        Case::new("pmu_amd_v2", || matrix::modes(context, "amd2", AMD_V2)),
        Case::new("pmu_of_an_idle_machine", || idle::says_so(context, "amd2")),
        Case::new("pmu_behind_its_proof", || tardy::is_ours(context, "intel")),
        Case::new("pmu_intel_on_4_cpus", || {
            matrix::all_cpus(context, "intel", INTEL)
        }),
        Case::new("pmu_amd_on_4_cpus", || {
            matrix::all_cpus(context, "amd", AMD)
        }),
        Case::new("pmu_amd_v2_on_4_cpus", || {
            matrix::all_cpus(context, "amd2", AMD_V2)
        }),
        Case::new("pmu_that_lies_on_4_cpus", || {
            matrix::neighbours(context, "intel:faulting", Proof::Faults)?;
            matrix::neighbours(context, "amd:latched", Proof::StandsStill)?;
            matrix::neighbours(context, "amd2:silent", Proof::Silent)
        }),
        Case::new("pmu_of_half_the_cpus", || {
            matrix::half(context, "intel:latched:2", INTEL)
        }),
    ]
}

/// The kernel as it is must work below the shim, on all CPUs. Of one CPU's timers, the one that sends NMIs is the shim's.
fn boots(context: &Context<'_>, smp: u32, source: &str) -> Verdict {
    let mut machine = Machine::boot(context, "amd:swallowing", smp, Time::Real)?;
    let log = machine.session.run("dmesg")?.replace("\n  ", " ");
    ensure!(
        !log.contains("not known"),
        "the kernel saw what is the shim's"
    );
    ensure!(log.contains(TICK) == (source == "tick"), "{log}");
    let report = machine.session.profile("1000")?;
    ensure!(
        report.source == source && report.cpus == u64::from(smp),
        "{report:?}"
    );
    // Every NMI goes through the shim, and none of these is a counter's.
    let tally = machine.tally()?;
    let sent = if smp > 1 { report.samples } else { 0 };
    ensure!(tally.sent >= sent, "{tally:?}, {report:?}");
    ensure!(Tally { sent: 0, ..tally } == Tally::default(), "{tally:?}");
    machine.power_off()
}
