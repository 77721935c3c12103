//! How many instructions a datagram takes that `netload` answers: from the card's interrupt through the net server, the program and
//! back, until nobody has anything to do.
//!
//! The guest counts (`tests/bench/src/guest/echo.rs`). A socket of the host sends one datagram at a time, so each is a batch of its own: the dearest
//! way to come. The remote shell is on, as `./run.sh` has it, at its own port.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use anyhow::{Context as _, Result};
use bench::figure as guest;

use crate::build::Image;
use crate::cli::{BootOptions, Forward};
use crate::qemu::{self, Network, REMOTE_SHELL_PORT};
use crate::system::calm::until;
use crate::system::guest::Guest;
use crate::system::net::{connect, converse};
use crate::system::session::Session;

use super::Figure;
use super::guest::parse_line;

/// The guest's port at which the program answers.
const PORT: u16 = 7;
/// Bytes of a datagram.
const BYTES: usize = 64;

/// Instructions for each datagram that is answered.
///
/// # Errors
/// If there is no answer, or the guest says anything else.
pub fn answer(image: &Image) -> Result<Figure> {
    let port = qemu::free_port().context("no UDP port is free")?;
    let options = BootOptions {
        smp: 1,
        icount: true,
        cmdline: format!("udpshell={REMOTE_SHELL_PORT} ip=10.0.2.15/24 gw=10.0.2.2"),
        forwards: vec![Forward {
            host: port,
            guest: PORT,
        }],
        ..BootOptions::default()
    };
    let guest = Guest::boot_on(image, options, Network::Closed)?;
    let mut session = Session::begin(guest)?;
    until(&mut session, |session| {
        session.expect("dmesg", &["remote shell at UDP port "])
    })?;
    session.run(&format!("netload start {PORT}"))?;
    let socket = connect(port)?;
    let ends = AtomicBool::new(false);
    let said = thread::scope(|scope| {
        let sender = scope.spawn(|| -> Result<()> {
            let mut datagram = [0; BYTES];
            for number in 0_u64.. {
                if ends.load(Relaxed) {
                    break;
                }
                datagram[..8].copy_from_slice(&number.to_le_bytes());
                converse(&socket, &datagram)?;
            }
            Ok(())
        });
        let said = session.run("run bench echo");
        ends.store(true, Relaxed);
        let sent = sender
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent.and(said)
    })?;
    session.run("netload stop")?;
    session.power_off()?;
    parse_line(said.trim_end(), guest::Figure::Echo)
}
