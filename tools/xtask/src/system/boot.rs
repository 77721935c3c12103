//! Machines that Sonde boots on.

use anyhow::{Result, bail, ensure};

use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::session::Session;

/// Windows in which all CPUs must have had a turn.
const WINDOWS: usize = 10;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("boots_on_1_cpu", || boots(context, 1, 100)),
        Case::new("boots_on_2_cpus", || boots(context, 2, 100)),
        Case::new("boots_on_4_cpus", || boots(context, 4, 100)),
        Case::new("boots_on_8_cpus", || boots(context, 8, 100)),
        Case::new("boots_on_16_cpus", || boots(context, 16, 2000)),
        Case::new("boots_with_24_mib", || {
            memory(context, 24).and_then(Session::power_off)
        }),
        Case::new("boots_with_memory_above_4_gib", || {
            memory(context, 5 << 10).and_then(Session::power_off)
        }),
        Case::new("an_unknown_word_of_the_command_line_is_named", || {
            unknown(context)
        }),
        Case::new("the_clock_is_measured_within_5_ms", || clock(context)),
        Case::new("boots_under_icount", || {
            let options = BootOptions {
                icount: true,
                smp: 1,
                ..BootOptions::default()
            };
            let mut session = Session::boot(context, options)?;
            session.profile("100")?;
            session.power_off()
        }),
        Case::new("boots_with_an_x2apic_that_is_only_claimed", || {
            claimed_x2apic(context)
        }),
    ]
}

/// QEMU's emulator has no x2APIC, and can be made to claim one. The deadline timer, which such models claim as well, is left out.
fn claimed_x2apic(context: &Context<'_>) -> Verdict {
    let options = BootOptions {
        smp: 2,
        cpu: "Haswell,-tsc-deadline,x-force-features=on".into(),
        ..BootOptions::default()
    };
    let mut session = Session::boot(context, options)?;
    session.expect("dmesg x2APIC", &["claims an x2APIC and has none"])?;
    let report = session.profile("200")?;
    ensure!(report.cpus == 2, "{report:?}");
    session.power_off()
}

/// The machine must count its CPUs, and each must have its part in a report of so many milliseconds.
fn boots(context: &Context<'_>, smp: u32, ms: u32) -> Verdict {
    let mut session = Session::on(context, smp)?;
    let cpus = if smp == 1 {
        "1 cpu".into()
    } else {
        format!("{smp} cpus")
    };
    let banner = format!("Sonde: {cpus}, ");
    ensure!(
        session.greeting.contains(&banner),
        "no {banner:?} in:\n{}",
        session.greeting
    );
    session.expect("uptime", &[&cpus])?;
    // Where the host lets one starve for a whole window, there is another window.
    for _ in 0..WINDOWS {
        let report = session.profile(&ms.to_string())?;
        ensure!(report.cpus <= u64::from(smp), "{report:?}");
        if report.cpus == u64::from(smp) {
            return session.power_off();
        }
    }
    bail!("some CPU had no part in {WINDOWS} windows")
}

fn unknown(context: &Context<'_>) -> Verdict {
    let options = BootOptions {
        cmdline: "panic=later verbose".into(),
        ..BootOptions::default()
    };
    let mut session = Session::boot(context, options)?;
    let line = "not known on the command line: panic=later (known:";
    session.expect("dmesg known", &[line])?;
    session.power_off()
}

/// Where an instruction is a nanosecond, whatever else the host has to do.
fn clock(context: &Context<'_>) -> Verdict {
    let options = BootOptions {
        icount: true,
        smp: 1,
        ..BootOptions::default()
    };
    let mut session = Session::boot(context, options)?;
    let line = session.expect("dmesg tsc:", &[" ppm, in "])?;
    let micros = line.split(" ppm, in ").nth(1);
    let micros: u32 = micros
        .and_then(|rest| rest.split(' ').next())
        .unwrap_or_default()
        .parse()?;
    ensure!(micros <= 5_000, "{line}");
    session.power_off()
}

fn memory(context: &Context<'_>, mem: u32) -> Result<Session> {
    let options = BootOptions {
        mem,
        ..BootOptions::default()
    };
    let mut session = Session::boot(context, options)?;
    session.profile("100")?;
    Ok(session)
}
