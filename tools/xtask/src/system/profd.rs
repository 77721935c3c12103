//! profd where it goes badly: it gets no CPU while its rings fill, or dies in the middle of a window.

use anyhow::{Context as _, Result, bail, ensure};
use ipc::abi::profile::RING_RECORDS;
use ipc::proto::system::{OnDeath, Program};

use crate::build::Image;
use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::archive::reconfigured;
use super::calm::until;
use super::report::Report;
use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("what_a_starved_profd_loses_is_counted_on_1_cpu", || {
            starved(context, 1)
        }),
        Case::new("what_a_starved_profd_loses_is_counted_on_4_cpus", || {
            starved(context, 4)
        }),
        Case::new("sampling_ends_with_profd", || ends(context)),
        Case::new("a_profile_works_after_profd_died_in_one", || again(context)),
    ]
}

/// This image with another entry of profd's.
fn with_profd(
    context: &Context<'_>,
    image: &Image,
    name: &str,
    change: impl FnOnce(&mut Program),
) -> Result<Image> {
    reconfigured(context, image, name, |config| {
        let mut programs = config.programs.iter_mut();
        if let Some(profd) = programs.find(|program| program.name == "profd") {
            change(profd);
        }
    })
}

/// On each CPU a `spin` is above a profd that has the lowest priority. Time is instructions, so there are as many samples on each host.
fn starved(context: &Context<'_>, smp: u32) -> Verdict {
    let image = with_profd(
        context,
        context.image()?,
        &format!("starved-{smp}"),
        |profd| {
            profd.priority = 0;
        },
    )?;
    let options = BootOptions {
        smp,
        icount: true,
        ..BootOptions::default()
    };
    let mut session = Session::boot_image(&image, options)?;
    // It has started once it answers: before, the shell has nobody to lend its priority to.
    session.profile("10")?;
    let before = nmis(&mut session)?;
    // Typed ahead, so that the window opens while they spin: to begin the profile, profd has the shell's priority.
    let mut typed = "run spin -t 2500 &\n".repeat(smp as usize);
    typed.push_str("profile 2000 -v\n");
    session.guest.send(typed.as_bytes())?;
    session.guest.wait_for("profile 2000 -v")?;
    let text = session.guest.prompt()?;
    let after = nmis(&mut session)?;
    let start = text.find("profiled ").with_context(|| text.clone())?;
    let report = Report::parse(&text[start..])?;
    let fates = report.fates();
    // The rings keep their newest records, and what they lost is all the rest.
    let read = fates.reported + fates.outside;
    let rings = u64::from(smp) * RING_RECORDS as u64;
    ensure!(fates.dropped > rings / 2 && read >= rings, "{text}");
    // How many there were is known from the interrupts, which are counted at their entry: each took a sample or came late. Of each CPU
    // one more may have come too late to be in the report.
    let nmis: u64 = after
        .iter()
        .zip(before)
        .map(|(after, before)| after - before)
        .sum();
    let late = report.odd.get("late").context("no late ones")?;
    let lost = nmis - late - read;
    let too_late = if smp == 1 { 0 } else { u64::from(smp) };
    ensure!(
        (fates.dropped..=fates.dropped + too_late).contains(&lost),
        "{nmis} NMIs: {text}"
    );
    ensure!(
        report.odd.get("overwritten") == Some(&fates.dropped)
            && report.odd.get("corrupt") == Some(&0),
        "{text}"
    );
    // With the CPUs to itself again it loses nothing.
    let report = session.profile("1000")?;
    ensure!(report.dropped == 0, "{report:?}");
    session.power_off()
}

fn ends(context: &Context<'_>) -> Verdict {
    let image = with_profd(context, context.test_image()?, "no-profd", |profd| {
        profd.on_death = OnDeath::Leave;
    })?;
    let mut session = Session::boot_image(&image, BootOptions::default())?;
    kill_in_mid_window(&mut session)?;
    // Nobody is there who could stop it, and it stops within a tick.
    until(&mut session, |session| {
        let before = nmis(session)?;
        session.run("run sleep 100")?;
        let after = nmis(session)?;
        ensure!(before == after, "still sampling: {before:?}, {after:?}");
        Ok(())
    })?;
    session.expect("profile 100", &["profile: the other side is gone"])?;
    session.power_off()
}

fn again(context: &Context<'_>) -> Verdict {
    for smp in [1, 2, 4] {
        let options = BootOptions {
            smp,
            ..BootOptions::default()
        };
        let mut session = Session::boot_image(context.test_image()?, options)?;
        kill_in_mid_window(&mut session)?;
        let report = session.profile("500")?;
        ensure!(
            report.profiled_ms == 500 && report.samples > 0,
            "{report:?}"
        );
        session.power_off()?;
    }
    Ok(())
}

/// Kills profd while it measures for a program, which is told.
fn kill_in_mid_window(session: &mut Session) -> Verdict {
    let idle = nmis(session)?;
    session.start("asker")?;
    until(session, |session| {
        let now = nmis(session)?;
        ensure!(now != idle, "no samples are taken: {now:?}");
        Ok(())
    })?;
    let processes = session.processes()?;
    let profd = processes.iter().find(|process| process.name == "profd");
    let pid = profd.context("profd does not run")?.pid;
    session.guest.send(format!("kill {pid}\n").as_bytes())?;
    session.guest.wait_for("asker: the other side is gone")?;
    session.settle(b"")?;
    Ok(())
}

/// NMIs of each CPU since boot.
///
/// # Errors
/// They are not told.
pub fn nmis(session: &mut Session) -> Result<Vec<u64>> {
    let text = session.run("irq")?;
    let row = text.lines().find_map(|line| line.strip_prefix("nmi "));
    let Some(row) = row else {
        bail!("no NMIs in:\n{text}")
    };
    let counts = row.split_whitespace().map(str::parse);
    Ok(counts.collect::<Result<_, _>>()?)
}
