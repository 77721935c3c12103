//! A load of datagrams from the host that a program answers, with profiles meanwhile. When it is over, nothing is left of it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use anyhow::{Context as _, bail};
use fastrand::Rng;

use crate::cli::BootOptions;
use crate::qemu::{self, Network, REMOTE_SHELL_PORT};
use crate::system::calm::Calm;
use crate::system::guest::Guest;
use crate::system::net::{BURST, connect, converse, load};
use crate::system::session::Session;
use crate::test::{Context, Verdict};

use super::dice::one;

/// Profiles of a round.
const PROFILES: usize = 4;
/// Most bytes of a datagram that crosses an Ethernet whole.
const DATAGRAM_MAX: usize = 1472;

pub(super) fn round(context: &Context<'_>, dice: &mut Rng) -> Verdict {
    let port = qemu::free_port().context("no UDP port is free")?;
    let options = BootOptions {
        smp: *one(dice, &[1, 2, 4]),
        cmdline: "ip=10.0.2.15/24 gw=10.0.2.2".into(),
        ..BootOptions::default()
    };
    let guest = Guest::boot_on(context.image()?, options, Network::Forward(port))?;
    let mut session = Session::begin(guest)?;
    // What servers make when they are first used is made.
    session.profile("10")?;
    let before = Calm::of(&mut session)?;
    session.expect(&format!("netload start {REMOTE_SHELL_PORT}"), &["started "])?;
    let socket = connect(port)?;
    converse(&socket, b"there")?;
    // Also more at once than the program's socket has room for.
    let (burst, len) = (dice.u8(1..=4 * BURST), dice.usize(1..=DATAGRAM_MAX));
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| load(&socket, burst, len, &ends));
        let seen = (0..PROFILES).try_for_each(|_| -> Verdict {
            session.profile("500 all 20")?;
            session.expect("net", &["link        up"])?;
            session.expect("netload", &["received "])?;
            Ok(())
        });
        ends.store(true, Relaxed);
        let sent = sender
            .join()
            .unwrap_or_else(|_| bail!("the sender panicked"));
        seen.and(sent)
    })?;
    converse(&connect(port)?, b"still there")?;
    session.expect("netload stop", &["ended "])?;
    before.again_but_for_profd(&mut session)?;
    session.power_off()
}
