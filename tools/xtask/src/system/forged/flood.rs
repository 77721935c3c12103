//! Frames for a machine with one CPU, of which more than its card has room for are always on the way. QEMU's user network would lose what the card does not
//! take at once, and bring less than that.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use remote_shell::{Key, Mode};

use super::caller::Caller;
use super::end::End;
use super::{GATEWAY, STATIC, boot, frame, hello};
use crate::qemu::REMOTE_SHELL_PORT;
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
/// How often it is looked at what goes on.
const LOOKS: u8 = 5;
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

    let echo = frame::datagram(GATEWAY, end.machine, (4000, PORT), &[1; 64]);
    let ran = AtomicU64::new(0);
    while_flooded(
        |ends| send(&mut end, &echo, Some((&mode, &ran)), ends),
        || goes_on(&mut session, &ran),
    )?;

    // The network server itself is busy with each of these: it tries its keys. No link has room for others' datagrams then.
    let foreign = hello(&Mode::Keyed(Key::new([7; 32])), 1)?;
    let to = (4000, REMOTE_SHELL_PORT);
    let costly = frame::datagram(GATEWAY, end.machine, to, &foreign);
    while_flooded(
        |ends| send(&mut end, &costly, None, ends),
        || (0..LOOKS).try_for_each(|_| answers(&mut session)),
    )?;
    session.expect_alive(&before)?;
    session.power_off()
}

/// Does this while a thread floods the machine.
fn while_flooded(
    flood: impl FnOnce(&AtomicBool) -> Verdict + Send,
    meanwhile: impl FnOnce() -> Verdict,
) -> Verdict {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| flood(&ends));
        let held = meanwhile();
        ends.store(true, Relaxed);
        let sent = sender
            .join()
            .unwrap_or_else(|_| bail!("the sender panicked"));
        held.and(sent)
    })
}

/// The serial line and the profile go on.
fn answers(session: &mut Session) -> Verdict {
    session.expect("ps", &["net", "netload"])?;
    session.profile("200")?;
    Ok(())
}

/// They do, and `netload`, and remote commands.
fn goes_on(session: &mut Session, ran: &AtomicU64) -> Verdict {
    for _ in 0..LOOKS {
        let earlier = received(session)?;
        answers(session)?;
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

/// Keeps the machine behind with this frame until it is told to end, and runs remote commands over the same cable if they are to be counted.
fn send(
    end: &mut End,
    frame: &[u8],
    commands: Option<(&Mode, &AtomicU64)>,
    ends: &AtomicBool,
) -> Verdict {
    let mut ports = 20_000..;
    let mut caller = None;
    while !ends.load(Relaxed) {
        while end.ahead() < AHEAD {
            for _ in 0..BATCH {
                end.send(frame)?;
            }
            end.mark()?;
        }
        if let Some((mode, ran)) = commands {
            let mut running = match caller.take() {
                Some(running) => running,
                None => Caller::new(end, mode, "echo on", ports.next().context("no port")?)?,
            };
            match running.turn(end)? {
                None => caller = Some(running),
                Some(output) => {
                    ensure!(output == "on\n", "{output}");
                    ran.fetch_add(1, Relaxed);
                }
            }
        }
        end.turn(STEP)?;
    }
    Ok(())
}
