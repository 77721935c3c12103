//! `reboot`: what it asks of QEMU, and the whole way through `run.sh` to a second boot, which knows nothing of the first.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::child;
use crate::qemu::{REBOOT, debug_exit};
use crate::test::{Case, Context, Verdict};

use super::guest::Guest;
use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("reboot_asks_for_another_boot", || ask(context)),
        Case::new("a_second_boot_begins_anew", || boot_again(context)),
    ]
}

fn ask(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    session.guest.send(b"reboot\n")?;
    Ok(session.guest.expect_exit(debug_exit(REBOOT))?)
}

/// With every CPU busy, and a trace on, when it is asked for.
fn boot_again(context: &Context<'_>) -> Verdict {
    context.image()?;
    let mut command = child::command(context.workspace.root.join("run.sh"));
    command.args(["--smp", "2"]);
    let mut session = Session::begin(Guest::start(command)?)?;
    let servers = session.processes()?;
    session.run("demo")?;
    session.run("trace on")?;
    let first = uptime(&mut session)?;

    let asked = Instant::now();
    session.guest.send(b"reboot\n")?;
    session.guest.wait_for("reboot\n")?;
    let mut session = Session::begin(session.guest)?;
    let second = uptime(&mut session)?;
    let since = asked.elapsed();
    // The guest's clock was measured against another one, so it may be a little fast.
    ensure!(
        second <= since + since / 100,
        "up {second:?}, {since:?} after the reboot that was asked for when it was up {first:?}"
    );
    let pids = |processes: &[_]| -> Vec<(u64, String)> {
        let pair = |process: &super::tables::Process| (process.pid, process.name.clone());
        processes.iter().map(pair).collect()
    };
    let now = session.processes()?;
    ensure!(pids(&now) == pids(&servers), "{now:#?}");
    session.expect("trace", &["tracing is off"])?;
    session.guest.send(b"poweroff\n")?;
    Ok(session.guest.expect_exit(0)?)
}

/// How long the machine has been up.
fn uptime(session: &mut Session) -> Result<Duration> {
    let text = session.run("uptime")?;
    let seconds = (text.strip_prefix("up ")).and_then(|rest| rest.split_once("s,"));
    let seconds = seconds.and_then(|(seconds, _)| seconds.parse().ok());
    let seconds = seconds.with_context(|| format!("`uptime` printed:\n{text}"))?;
    Ok(Duration::try_from_secs_f64(seconds)?)
}
