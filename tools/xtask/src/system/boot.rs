//! Machines that Sonde boots on.

use anyhow::{Result, ensure};

use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("boots_on_1_cpu", || boots(context, 1)),
        Case::new("boots_on_2_cpus", || boots(context, 2)),
        Case::new("boots_on_4_cpus", || boots(context, 4)),
        Case::new("boots_on_8_cpus", || boots(context, 8)),
        Case::new("boots_with_memory_above_4_gib", || {
            memory(context, 5 << 10).and_then(Session::power_off)
        }),
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

fn memory(context: &Context<'_>, mem: u32) -> Result<Session> {
    let options = BootOptions {
        mem,
        ..BootOptions::default()
    };
    let mut session = Session::boot(context, options)?;
    session.profile("100")?;
    Ok(session)
}
