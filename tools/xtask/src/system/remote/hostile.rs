//! Datagrams that nobody should have sent: garbage of every length that an Ethernet carries whole, what was recorded, and what is sent without
//! the key. What claims to be from somebody else needs the other end of the cable (`system/forged`), longer ones a slower sender (`lengths.rs`).

use std::net::UdpSocket;
use std::time::Duration;

use anyhow::{Result, ensure};
use fastrand::Rng;
use remote_shell::{Client, ClientEvent, Instant, Key, Mode, Purpose, Refusal, Status, VERSION};

use super::wire::{self, Wire, exec};
use super::{Machine, key};
use crate::test::{Case, Context, Verdict};

/// Longer than any datagram that an Ethernet carries whole.
const LENGTHS: usize = 1500;
/// How long an answer that must not come is waited for.
const SILENCE: Duration = Duration::from_millis(300);

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![Case::new("hostile_datagrams_reach_nothing", || {
        hostile(context)
    })]
}

fn hostile(context: &Context<'_>) -> Verdict {
    let mut machine = Machine::keyed(context)?;
    let mut victim = Wire::open(machine.address, &machine.mode, Purpose::Shell, 1)?;
    victim.wait_for("> ")?;

    let recorded = recorded(&machine)?;
    let mut dice = Rng::with_seed(5);
    let socket = wire::socket(machine.address)?;
    for length in 0..LENGTHS {
        let mut bytes = vec![0; length];
        dice.fill(&mut bytes);
        if dice.bool() {
            // As a good one begins.
            let good = &recorded[dice.usize(..recorded.len())];
            let keep = dice.usize(..=good.len().min(length));
            bytes[..keep].copy_from_slice(&good[..keep]);
            if bytes == *good {
                continue;
            }
        }
        // A full buffer of the host loses some, as any link may.
        let _ = socket.send(&bytes);
        if length % 16 == 0 {
            victim.turn()?;
        }
    }
    ensure!(answers(&socket)? == 0, "garbage was answered");

    // What was recorded, from another address: hellos get a challenge, which is shorter; frames get nothing.
    let socket = wire::socket(machine.address)?;
    let mut sent = 0;
    for datagram in recorded.iter().chain(&victim.sent) {
        socket.send(datagram)?;
        sent += datagram.len();
    }
    let back = answers(&socket)?;
    let figures = format!("recorded sessions: {sent} bytes sent again, {back} came back\n");
    std::fs::write(context.workspace.target.join("remote-hostile.txt"), figures)?;
    ensure!(back < sent, "{back} bytes came back for {sent}");

    // Without the key, and with another one.
    for (seed, mode) in [(2, Mode::Open), (3, Mode::Keyed(Key::new([7; 32])))] {
        let mut stranger = Wire::open(machine.address, &mode, Purpose::Shell, seed)?;
        let event = stranger.event()?;
        ensure!(event == ClientEvent::Silent, "{mode:?}: {event:?}");
        victim.turn()?;
    }
    // Of another version, with the key.
    let (mode, purpose) = (machine.mode.clone(), Purpose::Shell);
    let later = Client::of_version(
        VERSION + 1,
        mode,
        purpose,
        wire::random(7),
        Instant::default(),
    );
    let event = Wire::of(later, machine.address)?.event()?;
    let refused = ClientEvent::Refused(Refusal::Version(VERSION));
    ensure!(event == refused, "{event:?}");
    // A key that may look may not do more.
    let observer = Mode::Keyed(key(context, "observe")?);
    let refused = Wire::open(machine.address, &observer, exec("kill 1")?, 4)?.finish()?;
    ensure!(refused.status == Status::Failed, "{refused:?}");

    // Nothing of all this was anybody's command, and all go on: the session, the serial line, and new ones.
    victim.send(b"echo still here\r")?;
    victim.wait_for("\r\nstill here\r\n")?;
    victim.close()?;
    let log = machine.session.run("dmesg")?;
    ensure!(!log.contains("panic"), "{log}");
    // Who has the serial line hears that somebody was at the door.
    ensure!(log.contains("net: remote shell refused since"), "{log}");
    // And how often each came.
    let net = machine.session.run("net")?;
    for count in [
        "1 of another version",
        " of the other mode",
        " by no key of this machine",
        " of no known form",
        " for no session",
    ] {
        ensure!(net.contains(count), "no {count:?} in {net}");
    }
    let ran = machine.run(machine.address, "echo new", 6)?;
    ensure!(ran.output == "new\n", "{ran:?}");
    machine.session.power_off()
}

/// All that the client of a session sent.
fn recorded(machine: &Machine) -> Result<Vec<Vec<u8>>> {
    let mut wire = Wire::open(machine.address, &machine.mode, exec("echo recorded")?, 9)?;
    let ran = wire.finish()?;
    ensure!(ran.output == "recorded\n", "{ran:?}");
    Ok(wire.sent)
}

/// How many bytes come back until nothing more does.
fn answers(socket: &UdpSocket) -> Result<usize> {
    socket.set_read_timeout(Some(SILENCE))?;
    let mut buffer = [0; 2048];
    let mut sum = 0;
    while let Ok(length) = socket.recv(&mut buffer) {
        sum += length;
    }
    Ok(sum)
}
