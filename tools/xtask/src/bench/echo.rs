//! How many instructions threads need to answer a datagram: through the net server, the program and back.
//!
//! Under `-icount` the time that threads have run is the number of their instructions, those of the kernel for them among them. A
//! socket of the host sends one datagram at a time, so each is a batch of its own: the dearest way to come. What passes while
//! nobody has anything to do is not in the figure.

use std::net::UdpSocket;
use std::ops::Range;

use anyhow::{Context as _, Result};

use crate::build::Image;
use crate::cli::BootOptions;
use crate::qemu::{self, Network, REMOTE_SHELL_PORT};
use crate::system::guest::Guest;
use crate::system::net::{connect, converse};
use crate::system::session::Session;

/// Datagrams that are measured. `ps` cuts times to a millisecond, which is a million instructions.
const COUNT: u64 = 4000;
/// Bytes of each.
const BYTES: usize = 64;

/// Instructions for each datagram that is answered.
///
/// # Errors
/// If there is no answer, or the machine does not say what its programs needed.
pub fn answer(image: &Image) -> Result<u64> {
    let options = BootOptions {
        smp: 1,
        icount: true,
        cmdline: "ip=10.0.2.15/24 gw=10.0.2.2".into(),
        ..BootOptions::default()
    };
    let port = qemu::free_port().context("no UDP port is free")?;
    let guest = Guest::boot_on(image, options, Network::Forward(port))?;
    let mut session = Session::begin(guest)?;
    session.run(&format!("netload start {REMOTE_SHELL_PORT}"))?;
    let socket = connect(port)?;
    answered(&socket, 0..10)?;
    let before = needed(&mut session)?;
    answered(&socket, 10..10 + COUNT)?;
    let after = needed(&mut session)?;
    session.run("netload stop")?;
    session.power_off()?;
    Ok((after - before) * 1_000_000 / COUNT)
}

/// Sends datagrams with these numbers, each until it comes back.
fn answered(socket: &UdpSocket, numbers: Range<u64>) -> Result<()> {
    for number in numbers {
        let mut datagram = [0; BYTES];
        datagram[..8].copy_from_slice(&number.to_le_bytes());
        converse(socket, &datagram)?;
    }
    Ok(())
}

/// Milliseconds that the server and the program have run.
fn needed(session: &mut Session) -> Result<u64> {
    let processes = session.processes()?;
    let times = ["net", "netload"].map(|name| {
        let process = processes.iter().find(|process| process.name == name);
        process.map(|process| process.milliseconds)
    });
    let times: Option<Vec<u64>> = times.into_iter().collect();
    Ok(times.context("`ps` does not show both")?.iter().sum())
}
