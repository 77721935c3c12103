//! Several programs with sockets at once, on four CPUs: each has its own datagrams, and what one of them had is free when it ends.

use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};

use crate::cli::{BootOptions, Forward};
use crate::qemu::{self, Network};
use crate::test::{Case, Context, Verdict};

use super::guest::Guest;
use super::net::{BURST, connect, converse, load};
use super::session::Session;

/// The ports of the guest that the host reaches.
const PORTS: [u16; 4] = [7, 9, 4000, 65_535];
/// Sockets with a port that there are for all programs.
const SOCKETS: u16 = 16;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("programs_have_sockets_at_once", || at_once(context)),
        Case::new("netload_says_what_is_wrong", || wrong(context)),
    ]
}

/// A machine, and the ports of the host by which [`PORTS`] are reached.
fn boot(context: &Context<'_>) -> Result<(Session, Vec<u16>)> {
    let hosts = PORTS.map(|_| qemu::free_port()).into_iter();
    let hosts: Vec<u16> = hosts
        .collect::<Option<_>>()
        .context("no UDP port is free")?;
    let forwards = hosts.iter().zip(PORTS);
    let options = BootOptions {
        smp: 4,
        cmdline: "ip=10.0.2.15/24 gw=10.0.2.2".into(),
        forwards: forwards
            .map(|(&host, guest)| Forward { host, guest })
            .collect(),
        ..BootOptions::default()
    };
    let guest = Guest::boot_on(context.image()?, options, Network::Closed)?;
    Ok((Session::begin(guest)?, hosts))
}

/// Starts `netload` at a port; its pid.
fn start(session: &mut Session, port: u16) -> Result<u64> {
    let said = session.expect(&format!("netload start {port}"), &["started "])?;
    let pid = said.trim_start().strip_prefix("started ");
    let pid = pid.and_then(|rest| rest.split(';').next()?.parse().ok());
    pid.with_context(|| said.clone())
}

fn at_once(context: &Context<'_>) -> Verdict {
    let (mut session, hosts) = boot(context)?;
    let before = session.processes()?;
    let mut sockets: Vec<UdpSocket> = Vec::new();
    let mut pids = Vec::new();
    for (&host, port) in hosts.iter().zip(PORTS) {
        pids.push(start(&mut session, port)?);
        sockets.push(connect(host)?);
    }
    for (socket, port) in sockets.iter().zip(PORTS) {
        converse(socket, format!("for {port}").as_bytes())?;
    }
    session.expect("net", &["sockets     4"])?;
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let ends = &ends;
        let load = |socket| scope.spawn(move || load(socket, BURST, 64, ends));
        let senders: Vec<_> = sockets.iter().map(load).collect();
        let seen = one_ends(&mut session, pids[0]);
        ends.store(true, Relaxed);
        let sent = senders.into_iter().try_for_each(|sender| {
            let sent = sender.join();
            sent.unwrap_or_else(|_| bail!("a sender panicked"))
        });
        seen.and(sent)
    })?;
    for &host in &hosts {
        converse(&connect(host)?, b"still there")?;
    }
    // All that there are, and one more.
    for port in 100..100 + SOCKETS - PORTS.len() as u16 {
        start(&mut session, port)?;
    }
    session.expect("net", &[&format!("sockets     {SOCKETS}")])?;
    let full = ["netload: all are in use", "exited with code 1"];
    session.expect("run netload start 99", &full)?;
    session.expect(&format!("kill {}", pids[1]), &["killed "])?;
    start(&mut session, PORTS[1])?;
    converse(&connect(hosts[1])?, b"the last")?;
    session.expect("netload stop", &["ended "])?;
    session.expect("net", &["sockets     0"])?;
    session.expect_alive(&before)?;
    session.power_off()
}

/// Of the programs under load the one at the first port is killed, and another has its port at once.
fn one_ends(session: &mut Session, pid: u64) -> Verdict {
    let taken = ["netload: the port is taken", "exited with code 1"];
    for port in PORTS {
        session.expect(&format!("run netload start {port}"), &taken)?;
    }
    session.expect(&format!("kill {pid}"), &["killed "])?;
    session.expect("net", &["sockets     3"])?;
    start(session, PORTS[0])?;
    let said = session.run("netload")?;
    for port in PORTS {
        let own = said
            .split("pid ")
            .find(|text| text.contains(&format!("port {port},")))
            .with_context(|| format!("no port {port} in {said}"))?;
        // Packets, and packets in a second.
        let received = own.lines().find(|line| line.starts_with("received "));
        let rate = received.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
        ensure!(
            rate.is_some_and(|rate: u64| rate > 0),
            "port {port} takes nothing: {said}"
        );
    }
    Ok(())
}

fn wrong(context: &Context<'_>) -> Verdict {
    let (mut session, _) = boot(context)?;
    for (arguments, told) in [
        ("", "WHAT is missing: start|send"),
        ("begin", "WHAT `begin`: start|send"),
        ("start x", "PORT `x`: 1 to 65535"),
        ("start 65536", "PORT `65536`: 1 to 65535"),
        ("send 10.0.2.256 9", "IP `10.0.2.256`: an IPv4 address"),
        ("send 10.0.2.2 0", "PORT `0`: 1 to 65535"),
        ("send 10.0.2.2 9 size=1473", "size `1473`: 0 to 1472"),
        (
            "send 10.0.2.2 9 pps=10000001",
            "pps `10000001`: 0 to 10000000",
        ),
        ("send 10.0.2.2 9 secs=86401", "secs `86401`: 0 to 86400"),
        ("send 10.0.2.2 9 count=-1", "count `-1`: 0 to 1000000000000"),
        (
            "send 10.0.2.2 9 sise=1",
            "netload send `sise=1`: size=N|pps=N|secs=N|count=N",
        ),
    ] {
        let line = format!("run netload {arguments}");
        let said = session.expect(line.trim_end(), &["exited with code 2"])?;
        // The shell breaks a line at 80 columns.
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        ensure!(words.contains(&format!("netload: {told}")), "{said}");
    }
    // What is right, and cannot be done.
    let no_way = [
        "sent 0 packets, 0 bytes in ",
        "; 0 came back, 3 failed, 0 unanswered",
    ];
    for host in ["0.0.0.0", "255.255.255.255", "224.0.0.1"] {
        session.expect(&format!("run netload send {host} 9 count=3"), &no_way)?;
    }
    session.expect("netload begin", &["`begin`: start, send, stop, or nothing"])?;
    session.expect("netload stop", &["none runs"])?;
    session.expect("net", &["sockets     0"])?;
    session.power_off()
}
