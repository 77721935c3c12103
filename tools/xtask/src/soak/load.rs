//! A load of datagrams from the host that a program answers, with profiles meanwhile, and remote sessions that come and go on a link that loses
//! and reorders. When it is over, nothing is left of it.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, ScopedJoinHandle};

use anyhow::{Context as _, bail, ensure};
use fastrand::Rng;
use remote_shell::{Mode, Purpose, Status};

use crate::cli::{BootOptions, Forward};
use crate::qemu;
use crate::system::calm::Calm;
use crate::system::net::{BURST, connect, converse, load};
use crate::system::remote::Machine;
use crate::system::remote::relay::Relay;
use crate::system::remote::wire::{Wire, exec};
use crate::system::session::Session;
use crate::test::{Context, Verdict};

use super::dice::one;

/// Where `netload` answers.
const PORT: u16 = 7;
/// Profiles of a round.
const PROFILES: usize = 4;
/// Most bytes of a datagram that crosses an Ethernet whole.
const DATAGRAM_MAX: usize = 1472;
/// Remote commands whose output is never empty.
const COMMANDS: [&str; 6] = ["ps", "mem", "net", "netload", "lscpu", "help profile"];

pub(super) fn round(context: &Context<'_>, dice: &mut Rng) -> Verdict {
    let port = qemu::free_port().context("no UDP port is free")?;
    let forward = Forward {
        host: port,
        guest: PORT,
    };
    let options = BootOptions {
        smp: *one(dice, &[1, 2, 4]),
        cmdline: "ip=10.0.2.15/24 gw=10.0.2.2".into(),
        forwards: vec![forward],
        ..BootOptions::default()
    };
    let mut machine = Machine::keyed_with(context, options)?;
    // What servers make when they are first used is made: profd reads each CPU by a thread of its own.
    machine.session.profile("10")?;
    machine.session.expect("lscpu", &["cpus "])?;
    let before = Calm::of(&mut machine.session)?;
    machine
        .session
        .expect(&format!("netload start {PORT}"), &["started "])?;
    let socket = connect(port)?;
    converse(&socket, b"there")?;
    // Also more at once than the program's socket has room for.
    let (burst, len) = (dice.u8(1..=4 * BURST), dice.usize(1..=DATAGRAM_MAX));
    let (relayed, visited) = (dice.u64(..), dice.fork());
    let relay = Relay::new(machine.address)?;
    let (address, mode) = (relay.address()?, &machine.mode);
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let relaying = scope.spawn(|| relay.run(relayed));
        let sender = scope.spawn(|| load(&socket, burst, len, &ends));
        let visitor = scope.spawn(|| visit(address, mode, visited, &ends));
        let seen = look(&mut machine.session);
        ends.store(true, Relaxed);
        // The visitor's last session needs the relay.
        let (sent, visited) = (joined(sender), joined(visitor));
        relay.stop();
        seen.and(sent).and(visited).and(joined(relaying))
    })?;
    converse(&connect(port)?, b"still there")?;
    machine.session.expect("netload stop", &["ended "])?;
    before.again_but_for_profd(&mut machine.session)?;
    machine.session.power_off()
}

fn joined(thread: ScopedJoinHandle<'_, Verdict>) -> Verdict {
    let ended = thread.join();
    ended.unwrap_or_else(|_| bail!("a thread of the load panicked"))
}

/// Profiles, in each of which every sample is accounted for.
fn look(session: &mut Session) -> Verdict {
    for _ in 0..PROFILES {
        session.profile("500 all 20")?;
        session.expect("net", &["link        up"])?;
        session.expect("netload", &["received "])?;
    }
    Ok(())
}

/// One remote session after another, until it is told to end; at least one.
fn visit(to: SocketAddr, mode: &Mode, mut dice: Rng, ends: &AtomicBool) -> Verdict {
    loop {
        if dice.bool() {
            let line = one(&mut dice, &COMMANDS);
            let ran = Wire::open(to, mode, exec(line)?, dice.u64(..))?.finish()?;
            let is_told = ran.status == Status::Success && !ran.output.is_empty();
            ensure!(is_told, "`{line}`: {ran:?}");
        } else {
            let mut shell = Wire::open(to, mode, Purpose::Shell, dice.u64(..))?;
            shell.wait_for("> ")?;
            for number in 0..dice.u8(..4) {
                shell.send(format!("echo {number}-{number}\r").as_bytes())?;
                shell.wait_for(&format!("\r\n{number}-{number}\r\n"))?;
            }
            shell.close()?;
        }
        if ends.load(Relaxed) {
            return Ok(());
        }
    }
}
