//! The network as programs and users have it: QEMU's own, with a DHCP server and a gateway at 10.0.2.2, which is the host.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::cli::BootOptions;
use crate::qemu::{self, Network, REMOTE_SHELL_PORT};
use crate::test::{Case, Context, Verdict};

use super::calm::until;
use super::guest::Guest;
use super::report::Chain;
use super::session::Session;

/// How long a datagram is waited for, and how often it is sent again: nobody promises that one arrives.
const STEP: Duration = Duration::from_millis(500);
/// How long all of a conversation may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Datagrams that are sent at once: as many as the socket keeps for its program.
pub const BURST: u8 = 32;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("the_network_has_an_address_by_dhcp", || dhcp(context)),
        Case::new("the_network_has_the_address_that_was_said", || {
            said(context)
        }),
        Case::new("a_wrong_address_is_none", || wrong(context)),
        Case::new("without_a_network_card_all_else_goes_on", || {
            absent(context)
        }),
        Case::new("netload_answers_each_datagram_with_itself", || {
            answers(context)
        }),
        Case::new("netload_sends_to_a_socket_of_the_host", || sends(context)),
        Case::new("a_profile_shows_the_way_of_a_packet", || way(context)),
    ]
}

fn boot(context: &Context<'_>, cmdline: &str, network: Network) -> Result<Session> {
    let options = BootOptions {
        smp: 2,
        cmdline: cmdline.into(),
        ..BootOptions::default()
    };
    Session::begin(Guest::boot_on(context.image()?, options, network)?)
}

/// Waits until a command prints this.
fn wait_for(session: &mut Session, line: &str, parts: &[&str]) -> Result<String> {
    until(session, |session| session.expect(line, parts))
}

fn dhcp(context: &Context<'_>) -> Verdict {
    let mut session = boot(context, "", Network::Closed)?;
    let parts = [
        "10.0.2.15/24 by DHCP",
        "gateway     10.0.2.2",
        "link        up",
    ];
    wait_for(&mut session, "net", &parts)?;
    session.expect(
        "ping 10.0.2.2 2",
        &["10.0.2.2: 1: ", "2 of 2 answered; least "],
    )?;
    // Nobody there has this address.
    session.expect("ping 10.0.2.77 1", &["10.0.2.77: 1: unreachable", "0 of 1"])?;
    session.expect("net", &["dropped     0"])?;
    session.power_off()
}

fn said(context: &Context<'_>) -> Verdict {
    let mut session = boot(context, "ip=10.0.2.20/24", Network::Closed)?;
    let parts = ["10.0.2.20/24 from the command line", "gateway     none"];
    session.expect("net", &parts)?;
    session.expect("ping 10.0.2.2 1", &["1 of 1 answered"])?;
    session.expect("ping 192.168.7.7 1", &["192.168.7.7: 1: unreachable"])?;
    session.power_off()
}

fn wrong(context: &Context<'_>) -> Verdict {
    let mut session = boot(context, "ip=10.0.2.300/24 gw=10.0.2.2", Network::Closed)?;
    let line = "ip=10.0.2.300/24: must be a host's address and a prefix of 1 to 30";
    // The shell breaks it at 80 columns.
    let said = session.run("dmesg ip=")?;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(words(&said).contains(line), "{said}");
    session.expect("net", &["address     none: the command line is wrong"])?;
    session.expect("ping 10.0.2.2 1", &["10.0.2.2: 1: unreachable"])?;
    session.power_off()
}

fn absent(context: &Context<'_>) -> Verdict {
    let mut session = boot(context, "", Network::Absent)?;
    session.expect("net", &["net: no network device"])?;
    session.expect("ping 10.0.2.2", &["ping: no network device"])?;
    session.expect("dmesg net", &["net: no network"])?;
    session.expect("run netload start", &["netload: no network device"])?;
    session.power_off()
}

/// A port of the loopback interface that nobody has.
fn free_port() -> Result<u16> {
    qemu::free_port().context("no UDP port is free")
}

/// A socket of the host's to this port of the loopback interface.
///
/// # Errors
/// If the host refuses.
pub fn connect(port: u16) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_read_timeout(Some(STEP))?;
    Ok(socket)
}

/// Sends a datagram until it comes back.
///
/// # Errors
/// If it does not.
pub fn converse(socket: &UdpSocket, datagram: &[u8]) -> Verdict {
    let deadline = Instant::now() + PATIENCE;
    let mut answer = [0; 2048];
    while Instant::now() < deadline {
        socket.send(datagram)?;
        match socket.recv(&mut answer) {
            Ok(len) if answer[..len] == *datagram => return Ok(()),
            // That of an earlier one, which was sent twice.
            Ok(_) => {}
            Err(error) if is_late(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bail!("no answer to {} bytes", datagram.len())
}

fn is_late(error: &std::io::Error) -> bool {
    let kinds = [
        ErrorKind::WouldBlock,
        ErrorKind::TimedOut,
        ErrorKind::ConnectionRefused,
    ];
    kinds.contains(&error.kind())
}

fn answers(context: &Context<'_>) -> Verdict {
    let port = free_port()?;
    let mut session = boot(context, "", Network::Forward(port))?;
    wait_for(&mut session, "net", &["by DHCP"])?;
    let start = format!("netload start {REMOTE_SHELL_PORT}");
    session.expect(&start, &["started "])?;
    let socket = connect(port)?;
    for len in [0, 1, 7, 8, 9, 63, 64, 65, 512, 1471, 1472] {
        let datagram: Vec<u8> = (0..len).map(|at| (at * 31 + len) as u8).collect();
        converse(&socket, &datagram)?;
    }
    let port = format!("port {REMOTE_SHELL_PORT}");
    session.expect(
        "netload",
        &[&port, "lost                 0", "failed               0"],
    )?;
    // Who else wants the port hears so; it is free when its program has gone.
    session.expect(
        &format!("run {start}"),
        &["netload: the port is taken", "exited with code 1"],
    )?;
    // What comes in pieces is none.
    socket.send(&[1; 3000])?;
    wait_for(&mut session, "net", &[" fragment"])?;
    session.expect("netload stop", &["ended "])?;
    session.expect("net", &["sockets     0"])?;
    session.expect(&start, &["started "])?;
    converse(&socket, b"again")?;
    session.expect("netload stop", &["ended "])?;
    session.power_off()
}

/// Sends datagrams of `len` bytes, at least one, in bursts of so many; the next when the last of one is back or lost, until it is told to
/// end.
///
/// # Errors
/// If the host refuses.
pub fn load(socket: &UdpSocket, burst: u8, len: usize, ends: &AtomicBool) -> Verdict {
    let mut answer = [0; 2048];
    while !ends.load(Relaxed) {
        for number in 0..burst {
            socket.send(&vec![number; len])?;
        }
        loop {
            match socket.recv(&mut answer) {
                Ok(_) if answer[0] < burst - 1 => {}
                Ok(_) => break,
                Err(error) if is_late(&error) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// The driver and the stack work for the program that waits for them, and a load leaves no memory behind.
fn way(context: &Context<'_>) -> Verdict {
    let port = free_port()?;
    let mut session = boot(
        context,
        "ip=10.0.2.15/24 gw=10.0.2.2",
        Network::Forward(port),
    )?;
    session.expect(&format!("netload start {REMOTE_SHELL_PORT}"), &["started "])?;
    let socket = connect(port)?;
    converse(&socket, b"there")?;
    let memory = |session: &mut Session| -> Result<Vec<(String, u64)>> {
        let mut processes = session.processes()?;
        processes.retain(|process| ["net", "netload"].contains(&process.name.as_str()));
        Ok(processes
            .into_iter()
            .map(|process| (process.name, process.kib))
            .collect())
    };
    let before = memory(&mut session)?;
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| load(&socket, BURST, 64, &ends));
        let found = until(&mut session, |session| {
            let report = session.profile("500 all 200 depth 48")?;
            let found = report.chains.iter().any(is_on_the_way);
            ensure!(found, "no packet on its way in {:#?}", report.chains);
            Ok(())
        });
        ends.store(true, Relaxed);
        let sent = sender
            .join()
            .unwrap_or_else(|_| bail!("the sender panicked"));
        found.and(sent)
    })?;
    let after = memory(&mut session)?;
    ensure!(
        before == after,
        "before the load {before:?}, after it {after:?}"
    );
    session.expect("netload stop", &["ended "])?;
    session.power_off()
}

/// Whether the server was sending a datagram, for the program that waits in its call.
fn is_on_the_way(chain: &Chain) -> bool {
    let calls = |caller: &String| caller.starts_with("<= netload`");
    let sends = |caller: &String| caller.starts_with("<- net`<stack::Stack<");
    chain.image == "net" && chain.callers.iter().any(calls) && chain.callers.iter().any(sends)
}

fn sends(context: &Context<'_>) -> Verdict {
    const COUNT: usize = 100;
    let mut session = boot(context, "", Network::Closed)?;
    wait_for(&mut session, "net", &["by DHCP"])?;
    let socket = UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    socket.set_read_timeout(Some(STEP))?;
    let port = socket.local_addr()?.port();
    let line = format!("run netload send 10.0.2.2 {port} size=100 pps=1000 count={COUNT}");
    let said = session.run(&line)?;
    let parts = [
        "sent 100 packets, 10000 bytes in ",
        "; 0 came back, 0 failed, 0 unanswered",
    ];
    for part in parts {
        ensure!(said.contains(part), "{said}");
    }
    let paced: u64 = said
        .split(" bytes in ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .context("no time")?
        .parse()?;
    ensure!(paced >= 99, "{COUNT} at 1000 a second took {paced} ms");
    let mut bytes = [1; 2048];
    let mut arrived = 0;
    // All of it is in the socket, which has room for it.
    while arrived < COUNT {
        let len = socket.recv(&mut bytes).context("a datagram is missing")?;
        ensure!(len == 100, "{len} bytes");
        arrived += 1;
    }
    ensure!(socket.recv(&mut bytes).is_err_and(|error| is_late(&error)));
    session.power_off()
}
