//! Machines that Sonde boots on.

use anyhow::{Result, bail, ensure};

use crate::bench::Boot;
use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::report::Report;
use super::session::Session;

/// Instructions that a boot on one CPU may take, from reset to the prompt and off; firmware and waiting count.
const INSTRUCTIONS_MAX: u64 = 60_000_000;
/// Windows in which all of many CPUs must have had a turn.
const CROWD_WINDOWS: usize = 10;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("boots_on_1_cpu", || boots(context, 1)),
        Case::new("boots_on_2_cpus", || boots(context, 2)),
        Case::new("boots_on_4_cpus", || boots(context, 4)),
        Case::new("boots_on_8_cpus", || boots(context, 8)),
        Case::new("boots_on_16_cpus", || crowd(context)),
        Case::new("boots_with_16_mib", || {
            memory(context, 16).and_then(Session::power_off)
        }),
        Case::new("boots_with_memory_above_4_gib", || {
            memory(context, 5 << 10).and_then(Session::power_off)
        }),
        Case::new("an_unknown_word_of_the_command_line_is_named", || {
            unknown(context)
        }),
        Case::new("the_clock_is_measured_within_5_ms", || clock(context)),
        Case::new("a_boot_takes_few_instructions", || few(context)),
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
    ]
}

fn boots(context: &Context<'_>, smp: u32) -> Verdict {
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
    let report = session.profile("100")?;
    ensure!(report.cpus <= u64::from(smp), "{report:?}");
    session.expect("uptime", &[&cpus])?;
    session.power_off()
}

fn few(context: &Context<'_>) -> Verdict {
    let boot = Boot::measure(context.workspace, context.image()?, 1)?;
    ensure!(boot.whole <= INSTRUCTIONS_MAX, "{boot:?}");
    Ok(())
}

fn unknown(context: &Context<'_>) -> Verdict {
    let options = BootOptions {
        cmdline: "panic=later verbose".into(),
        ..BootOptions::default()
    };
    let mut session = Session::boot(context, options)?;
    let line = "not known on the command line: panic=later (known: verbose ";
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

/// Every CPU must have its part in a report. Where the host lets one starve for a whole window, there is another window.
fn crowd(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 16)?;
    let mut text = String::new();
    for _ in 0..CROWD_WINDOWS {
        text = session.run("profile 2000")?;
        if text.contains(" on 16 cpus, ") {
            Report::parse(&text)?.check()?;
            return session.power_off();
        }
    }
    bail!("after {CROWD_WINDOWS} windows:\n{text}")
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
