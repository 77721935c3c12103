//! Frames for a machine with one CPU, of which more than its card has room for are always on the way. QEMU's user network would lose what the card does not
//! take at once, and bring less than that.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use remote_shell::Mode;

use super::caller::Caller;
use super::end::End;
use super::{GATEWAY, STATIC, boot, frame};
use crate::system::calm::until;
use crate::system::remote;
use crate::system::session::Session;
use crate::test::{Context, Verdict};

/// Frames between two marks.
const BATCH: usize = 128;
/// Batches that the machine is behind, each as much as its card has room for.
const AHEAD: u16 = 8;
/// How long a look for a frame takes while none is there.
const STEP: Duration = Duration::from_millis(1);
/// The port where they are answered.
const PORT: u16 = 7;
/// Commands that remote sessions run meanwhile, one after another.
const COMMANDS: u64 = 3;

/// The shell on the serial line, profiles, remote sessions, and the program that the flood is for go on.
pub fn flood(context: &Context<'_>) -> Verdict {
    let mode = Mode::Keyed(remote::key(context, "control")?);
    let (mut session, cable) = boot(context, 1, STATIC)?;
    session.expect(&format!("netload start {PORT}"), &["started "])?;
    let before = session.processes()?;
    let mut end = End::new(cable)?;
    let (ends, ran) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let sender = scope.spawn(|| send(&mut end, &mode, &ends, &ran));
        let answered = under(&mut session, &ran);
        ends.store(true, Relaxed);
        let sent = sender
            .join()
            .unwrap_or_else(|_| bail!("the sender panicked"));
        answered.and(sent)
    })?;
    session.expect_alive(&before)?;
    session.power_off()
}

/// What must go on meanwhile.
fn under(session: &mut Session, ran: &AtomicU64) -> Verdict {
    for _ in 0..5 {
        session.expect("ps", &["net", "netload"])?;
        let earlier = received(session)?;
        session.profile("200")?;
        until(session, |session| {
            let now = received(session)?;
            ensure!(now > earlier, "netload stands at {now} packets");
            Ok(())
        })?;
    }
    until(session, |_| {
        let ran = ran.load(Relaxed);
        ensure!(ran >= COMMANDS, "{ran} of {COMMANDS} remote commands ran");
        Ok(())
    })
}

/// Packets that `netload` says it has received.
fn received(session: &mut Session) -> Result<u64> {
    let said = session.run("netload")?;
    let line = said.lines().find_map(|line| line.strip_prefix("received "));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.with_context(|| format!("no packets in:\n{said}"))
}

/// Keeps the machine behind, and runs commands in remote sessions over the same cable, until it is told to end.
fn send(end: &mut End, mode: &Mode, ends: &AtomicBool, ran: &AtomicU64) -> Verdict {
    let frame = frame::datagram(GATEWAY, end.machine, (4000, PORT), &[1; 64]);
    let mut ports = 20_000..;
    let mut caller = None;
    while !ends.load(Relaxed) {
        while end.ahead() < AHEAD {
            for _ in 0..BATCH {
                end.send(&frame)?;
            }
            end.mark()?;
        }
        if caller.is_none() {
            let port = ports.next().context("no port")?;
            caller = Some(Caller::new(end, mode, "echo on", port)?);
        }
        if let Some(output) = caller
            .as_mut()
            .map(|caller| caller.turn(end))
            .transpose()?
            .flatten()
        {
            ensure!(output == "on\n", "{output}");
            ran.fetch_add(1, Relaxed);
            caller = None;
        }
        end.turn(STEP)?;
    }
    Ok(())
}
