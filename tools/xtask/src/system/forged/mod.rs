//! What a hostile host of the link can send: the test has the other end of the cable.
//!
//! Here are datagrams for the remote shell from sources that are not who sends them. What each of them brings back is counted on the cable: before a
//! peer has proved its address, that is never more than it sent.

mod cable;
mod caller;
mod dhcp;
mod end;
mod flood;
mod frame;
mod lenders;

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use remote_shell::{Client, DATAGRAM_MAX, Key, Mode};
use smoltcp::wire::EthernetAddress;

use super::guest::Guest;
use super::remote::random;
use super::session::Session;
use crate::cli::BootOptions;
use crate::qemu::{Network, REMOTE_SHELL_PORT};
use crate::test::{Case, Context, Verdict};
use cable::{Cable, Plug};
use end::End;
use frame::{ETHERNET, Host, IPV4};

/// How long an answer that must not come is waited for.
const SILENCE: Duration = Duration::from_millis(300);

const MACHINE: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
/// The command line by which it has that address.
const STATIC: &str = "ip=10.0.2.15/24 gw=10.0.2.2";
/// Who says for the hosts of the link where they are, and is the way to all the others.
const GATEWAY: Host = Host {
    mac: EthernetAddress([2, 0, 0, 0, 0, 2]),
    ip: Ipv4Addr::new(10, 0, 2, 2),
};
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 9);
const PRIVATE: Ipv4Addr = Ipv4Addr::new(192, 168, 7, 9);
const PUBLIC: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("forged_sources_are_sent_no_more_than_they_sent", || {
            keyed(context)
        }),
        Case::new("forged_sources_of_an_open_remote_shell", || open(context)),
        Case::new("a_flood_does_not_stop_the_serial_shell", || {
            flood::flood(context)
        }),
        Case::new("hostile_dhcp_servers_keep_nobody_from_an_address", || {
            lenders::hostile(context)
        }),
    ]
}

/// What one datagram may bring its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Nothing.
    None,
    /// An answer no longer than itself.
    Short,
    /// An answer of any length: that of a line of text, which `docs/remote-shell.md` says.
    Any,
}

/// Makes a good frame a wrong one.
type Spoil = fn(&mut Vec<u8>);

/// A datagram, and what it may bring.
struct Forged {
    name: String,
    from: Host,
    payload: Vec<u8>,
    answer: Answer,
    /// What is wrong with the frame.
    spoil: Spoil,
}

impl Forged {
    fn new(name: impl Into<String>, ip: Ipv4Addr, payload: Vec<u8>, answer: Answer) -> Self {
        Self {
            name: name.into(),
            from: Host { ip, ..GATEWAY },
            payload,
            answer,
            spoil: |_| {},
        }
    }
}

/// The first datagram of a client.
fn hello(mode: &Mode, seed: u64) -> Result<Vec<u8>> {
    let now = remote_shell::Instant::default();
    let mut client = Client::ping(mode.clone(), random(seed), now);
    let mut datagram = [0; DATAGRAM_MAX];
    let length = client.transmit(now, &mut datagram).context("no hello")?;
    Ok(datagram[..length].to_vec())
}

/// Sources that no host has.
const IMPOSSIBLE: [Ipv4Addr; 7] = [
    Ipv4Addr::UNSPECIFIED,
    Ipv4Addr::LOCALHOST,
    Ipv4Addr::BROADCAST,
    Ipv4Addr::new(10, 0, 2, 255),
    Ipv4Addr::new(224, 0, 0, 1),
    Ipv4Addr::new(240, 0, 0, 1),
    MACHINE,
];

/// What is done to a frame with a good hello, after which it is none.
const SPOILT: [(&str, Spoil); 10] = [
    ("wrong IPv4 checksum", |frame| frame[ETHERNET + 10] ^= 1),
    ("wrong UDP checksum", |frame| {
        frame[ETHERNET + IPV4 + 6] ^= 1;
    }),
    ("first fragment", |frame| {
        frame[ETHERNET + 6] |= 0x20;
        frame::mend(frame);
    }),
    ("later fragment", |frame| {
        frame[ETHERNET + 7] = 1;
        frame::mend(frame);
    }),
    ("last byte missing", |frame| {
        frame.pop();
    }),
    ("header of 16 bytes", |frame| {
        frame[ETHERNET] = 0x44;
        frame::mend(frame);
    }),
    ("IP version 6", |frame| {
        frame[ETHERNET] = 0x65;
        frame::mend(frame);
    }),
    ("IPv6's EtherType", |frame| {
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
    }),
    ("VLAN tag", |frame| {
        frame.splice(12..12, [0x81, 0, 0, 1]);
    }),
    ("for another host's MAC", |frame| frame[5] ^= 1),
];

fn keyed(context: &Context<'_>) -> Verdict {
    let mode = Mode::Keyed(super::remote::key(context, "control")?);
    let mut seed = 0;
    let mut good = || {
        seed += 1;
        hello(&mode, seed)
    };
    let mut forged = Vec::new();
    for ip in [NEAR, PRIVATE, PUBLIC] {
        let name = format!("hello from {ip}");
        forged.push(Forged::new(name, ip, good()?, Answer::Short));
    }
    for ip in IMPOSSIBLE {
        let name = format!("hello from {ip}");
        forged.push(Forged::new(name, ip, good()?, Answer::None));
    }
    for (name, spoil) in SPOILT {
        forged.push(Forged {
            spoil,
            ..Forged::new(name, NEAR, good()?, Answer::None)
        });
    }
    let multicast = EthernetAddress([1, 0, 0x5e, 0, 0, 1]);
    for mac in [EthernetAddress::BROADCAST, multicast] {
        let from = Host { mac, ip: NEAR };
        let name = format!("hello from {mac}");
        forged.push(Forged {
            from,
            ..Forged::new(name, NEAR, good()?, Answer::Short)
        });
    }
    let other = Mode::Keyed(Key::new([7; 32]));
    let none = [
        ("hello of another key", hello(&other, 1)?),
        ("hello without a key", hello(&Mode::Open, 2)?),
        ("line of text", b"help\n".to_vec()),
        ("nothing", Vec::new()),
    ];
    for (name, payload) in none {
        forged.push(Forged::new(name, NEAR, payload, Answer::None));
    }
    // A part of a hello, of each length that an Ethernet carries whole.
    let whole = good()?;
    for length in 0..=1472 {
        let mut payload = whole.clone();
        payload.resize(length, 0);
        let answer = if length == whole.len() {
            Answer::Short
        } else {
            Answer::None
        };
        let name = format!("hello of {length} bytes");
        forged.push(Forged::new(name, NEAR, payload, answer));
    }
    send(context, "keyed", "", &forged)
}

fn open(context: &Context<'_>) -> Verdict {
    let forged = [
        Forged::new(
            "hello from near",
            NEAR,
            hello(&Mode::Open, 1)?,
            Answer::Short,
        ),
        Forged::new(
            "hello from afar",
            PRIVATE,
            hello(&Mode::Open, 2)?,
            Answer::Short,
        ),
        Forged::new("public hello", PUBLIC, hello(&Mode::Open, 3)?, Answer::None),
        Forged::new("line from near", NEAR, b"help\n".to_vec(), Answer::Any),
        Forged::new("line in public", PUBLIC, b"help\n".to_vec(), Answer::None),
    ];
    send(context, "open", " udpshell-open", &forged)
}

/// Boots a machine at a cable, and waits for its remote shell.
fn boot(context: &Context<'_>, smp: u32, words: &str) -> Result<(Session, Cable)> {
    let plug = Plug::new()?;
    let options = BootOptions {
        smp,
        cmdline: format!("{words} udpshell={REMOTE_SHELL_PORT}"),
        ..BootOptions::default()
    };
    let network = Network::Cable(plug.port()?);
    let mut session = Session::begin(Guest::boot_on(context.image()?, options, network)?)?;
    super::calm::until(&mut session, |session| {
        session.expect("dmesg", &["remote shell at"])
    })?;
    Ok((session, plug.cable()?))
}

/// Sends them all to a machine, and looks at what comes back for whom.
fn send(context: &Context<'_>, name: &str, words: &str, forged: &[Forged]) -> Verdict {
    let (mut session, cable) = boot(context, 2, &format!("{STATIC}{words}"))?;
    let before = session.processes()?;
    let mut end = End::new(cable)?;
    for (source, datagram) in (20_000..).zip(forged) {
        let ports = (source, REMOTE_SHELL_PORT);
        let mut frame = frame::datagram(datagram.from, end.machine, ports, &datagram.payload);
        (datagram.spoil)(&mut frame);
        end.send(&frame)?;
        end.catch_up()?;
        if datagram.answer != Answer::None {
            end.until(|end| end.back.contains_key(&(datagram.from.ip, source)))
                .with_context(|| format!("{}: no answer", datagram.name))?;
        }
    }
    end.listen(SILENCE)?;
    let mut figures = String::new();
    for (source, datagram) in (20_000..).zip(forged) {
        let sent = IPV4 + 8 + datagram.payload.len();
        let back = end.back.remove(&(datagram.from.ip, source)).unwrap_or(0);
        let allowed = match datagram.answer {
            Answer::None => 0,
            Answer::Short => sent,
            Answer::Any => usize::MAX,
        };
        let figure = format!("{}: {sent} bytes sent, {back} came back", datagram.name);
        ensure!(back <= allowed, "{figure}");
        if back > 0 {
            let ratio = back as f64 / sent as f64;
            writeln!(figures, "{figure}: {ratio:.2}")?;
        }
    }
    ensure!(end.back.is_empty(), "to whom? {:?}", end.back);
    let file = format!("remote-amplification-{name}.txt");
    std::fs::write(context.workspace.target.join(file), figures)?;
    session.expect_alive(&before)?;
    session.power_off()
}
