//! The server of the remote shell, among clients that are as they should be, peers that forge, damage and repeat what they have
//! seen, and a link that loses.
//!
//! Keyed, nobody without the key can do anything: what the clients that have it type and see arrives whole, in order and once.
//! Open, frames can be forged by who sees them; the promises are those about addresses and about memory.

use std::collections::{BTreeMap, HashSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use remote_shell::{
    Client, ClientEvent, Command, DATAGRAM_MAX, Instant, Key, KeyRing, Mode, Purpose, Random, Role,
    SESSIONS_MAX, Server, ServerEvent, ServerMode, Status, Stream,
};

use super::acts;
use crate::wire::{FROM_CLIENT, HELLO, frame, open_packet, packet_header};

/// Clients at once, at ports from 0 on. Hostile peers have the ports from `SPOOFED` on, and hear no answer.
const CLIENTS_MAX: usize = 6;
const SPOOFED: u16 = 1000;
/// Datagrams that may be due at one moment.
const DUE_MAX: usize = 10_000;
/// Sessions that are only told that they come too late.
const LATE_MAX: usize = 32;
/// Longer than anything lasts of which nothing is heard.
const GONE: Duration = Duration::from_secs(60);
/// Recorded datagrams that can be repeated.
const RECORDED_MAX: usize = 256;

#[derive(Arbitrary, Debug)]
enum Act<'a> {
    /// A client with the key of who may do everything, of who may look, or of nobody.
    Client {
        key: u8,
        purpose: Option<&'a str>,
    },
    Ping {
        key: u8,
    },
    /// Everybody sends what is due; the bits say what of it is lost.
    Step {
        lost: u16,
    },
    Wait(u16),
    Type {
        client: u8,
        bytes: u16,
    },
    Leave {
        client: u8,
    },
    Show {
        session: u8,
        bytes: u16,
    },
    Read {
        session: u8,
        bytes: u16,
    },
    Finish {
        session: u8,
        status: u8,
    },
    /// A datagram of before, from its own address or another one, changed or not.
    Repeat {
        which: u8,
        spoofed: Option<u8>,
        change: Option<(u16, u8)>,
        cut: Option<u16>,
    },
    Raw {
        peer: u8,
        bytes: &'a [u8],
    },
    Line {
        peer: u8,
        text: &'a str,
    },
    Hello {
        peer: u8,
        version: u8,
        ask: u8,
        cookie: Option<[u8; 16]>,
        token: u8,
    },
    /// Of the session that a client at this port was let into last, or of any.
    Frame {
        peer: u8,
        session: Option<u64>,
        number: u16,
        next: u8,
        behind: u32,
        window: u8,
        stream: u8,
        sequence: u8,
        index: u8,
        count: u8,
        bytes: &'a [u8],
    },
    Sealed {
        peer: u8,
        kind: u8,
        version: u8,
        key: u8,
        body: &'a [u8],
    },
    Serves(bool),
}

/// Numbers as bytes, each another one: what is lost, repeated or swapped shows.
fn pattern(from: usize, length: usize) -> Vec<u8> {
    (from..from + length)
        .map(|at| (at ^ at >> 8) as u8)
        .collect()
}

fn is_pattern(from: usize, bytes: &[u8]) -> bool {
    bytes == pattern(from, bytes.len())
}

fn random(seed: u64) -> Random {
    let mut rng = fastrand::Rng::with_seed(seed);
    Box::new(move |bytes| rng.fill(bytes))
}

const fn key(which: u8) -> Key {
    Key::new([which; 32])
}

fn ring() -> KeyRing {
    let file = format!("control {}\nobserve {}\n", key(0).to_hex(), key(1).to_hex());
    match KeyRing::parse(file.as_bytes()) {
        Ok(ring) => ring,
        Err(error) => unreachable!("it is a key file: {error}"),
    }
}

const fn address(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, 2), port)
}

struct Peer {
    client: Client,
    key: u8,
    typed: usize,
    seen: usize,
}

#[derive(Debug)]
struct Session {
    peer: SocketAddrV4,
    shown: usize,
    read: usize,
}

struct World {
    now: Instant,
    keyed: bool,
    server: Server,
    /// By port; one after the other.
    clients: BTreeMap<u16, Peer>,
    next_port: u16,
    sessions: BTreeMap<u32, Session>,
    numbers: HashSet<u32>,
    recorded: Vec<(SocketAddrV4, Vec<u8>)>,
    /// The session id of each address that was seen in a packet.
    seen_sessions: BTreeMap<SocketAddrV4, u64>,
    /// Bytes from and to each address that never was a client's.
    spoofed: BTreeMap<SocketAddrV4, (usize, usize)>,
    /// Those that sent a line of text, which is answered without a proof.
    lines: HashSet<SocketAddrV4>,
}

impl World {
    fn new(keyed: bool) -> Self {
        let mode = if keyed {
            ServerMode::Keyed(ring())
        } else {
            ServerMode::Open
        };
        Self {
            now: Instant::from_nanos(1_000_000_000),
            keyed,
            server: Server::new(mode, random(1)),
            clients: BTreeMap::new(),
            next_port: 0,
            sessions: BTreeMap::new(),
            numbers: HashSet::new(),
            recorded: Vec::new(),
            seen_sessions: BTreeMap::new(),
            spoofed: BTreeMap::new(),
            lines: HashSet::new(),
        }
    }

    fn mode(&self, which: u8) -> Mode {
        if self.keyed {
            Mode::Keyed(key(which))
        } else {
            Mode::Open
        }
    }

    /// Adds a client, if there is room; its port.
    fn add(&mut self, key: u8, make: impl FnOnce(Mode, Random, Instant) -> Client) -> Option<u16> {
        if self.clients.len() >= CLIENTS_MAX {
            let (&oldest, _) = self.clients.first_key_value()?;
            self.clients.remove(&oldest);
        }
        let port = self.next_port;
        self.next_port = (port + 1) % SPOOFED;
        let key = key % 3;
        let client = make(self.mode(key), random(u64::from(port) + 7), self.now);
        let (typed, seen) = (0, 0);
        self.clients.insert(
            port,
            Peer {
                client,
                key,
                typed,
                seen,
            },
        );
        Some(port)
    }

    fn give(&mut self, peer: SocketAddrV4, datagram: &[u8]) {
        if peer.port() >= SPOOFED {
            self.spoofed.entry(peer).or_default().0 += datagram.len();
        }
        self.server.receive(self.now, peer, datagram);
        self.events();
    }

    /// From an address that hears no answer.
    fn forge(&mut self, peer: u8, datagram: &[u8]) {
        self.give(address(SPOOFED + u16::from(peer)), datagram);
    }

    fn events(&mut self) {
        while let Some(event) = self.server.event() {
            match event {
                ServerEvent::Opened {
                    number, role, peer, ..
                } => {
                    assert!(
                        self.numbers.insert(number),
                        "session {number} was opened before"
                    );
                    if peer.port() >= SPOOFED {
                        assert!(!self.keyed, "{peer} has no key");
                        assert_eq!(role, Role::Observe);
                        self.lines.insert(peer);
                    } else if self.keyed {
                        // It may be gone by now, but only one with this key can have been there.
                        if let Some(client) = self.clients.get(&peer.port()) {
                            let allowed = [Some(Role::Control), Some(Role::Observe), None];
                            assert_eq!(Some(role), allowed[usize::from(client.key)]);
                        }
                    }
                    let session = Session {
                        peer,
                        shown: 0,
                        read: 0,
                    };
                    self.sessions.insert(number, session);
                }
                ServerEvent::Input(_) => {}
                ServerEvent::Closed(number, _) => drop(self.sessions.remove(&number)),
            }
        }
        assert!(self.server.sessions() <= SESSIONS_MAX + LATE_MAX);
    }

    /// Everybody sends what is due.
    fn step(&mut self, mut lost: u16) {
        let mut datagram = [0; DATAGRAM_MAX];
        let mut is_lost = || {
            let bit = lost & 1 == 1;
            lost >>= 1;
            bit
        };
        let ports: Vec<_> = self.clients.keys().copied().collect();
        for port in ports {
            let mut sent = Vec::new();
            if let Some(peer) = self.clients.get_mut(&port) {
                for due in 0.. {
                    assert!(due < DUE_MAX, "the client turns round and round");
                    let Some(length) = peer.client.transmit(self.now, &mut datagram) else {
                        break;
                    };
                    sent.push(datagram[..length].to_vec());
                }
            }
            for bytes in sent {
                if self.recorded.len() < RECORDED_MAX {
                    self.recorded.push((address(port), bytes.clone()));
                }
                if let Some(id) = bytes.get(8..16).and_then(|id| id.first_chunk()) {
                    self.seen_sessions
                        .insert(address(port), u64::from_le_bytes(*id));
                }
                if !is_lost() {
                    self.give(address(port), &bytes);
                }
            }
        }
        for due in 0.. {
            assert!(due < DUE_MAX, "the server turns round and round");
            let Some((peer, length)) = self.server.transmit(self.now, &mut datagram) else {
                break;
            };
            self.events();
            if peer.port() >= SPOOFED {
                self.spoofed.entry(peer).or_default().1 += length;
            } else if !is_lost()
                && let Some(at) = self.clients.get_mut(&peer.port())
            {
                at.client.receive(self.now, &datagram[..length]);
            }
        }
        self.events();
        for (peer, &(sent, back)) in &self.spoofed {
            let is_exempt = self.lines.contains(peer);
            assert!(
                is_exempt || back <= sent,
                "{peer} sent {sent} bytes and got {back}"
            );
        }
        for peer in self.clients.values_mut() {
            while let Some(event) = peer.client.event() {
                if let ClientEvent::Output(_, bytes) = event {
                    assert!(
                        !self.keyed || is_pattern(peer.seen, &bytes),
                        "output out of order"
                    );
                    peer.seen += bytes.len();
                }
                assert!(peer.client.is_over() || peer.key < 2 || !self.keyed || peer.seen == 0);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let clients = self
            .clients
            .values()
            .filter_map(|peer| peer.client.deadline());
        clients.chain(self.server.deadline()).min()
    }

    fn wait(&mut self, time: Duration, lost: u16) {
        let end = self.now + time;
        while self.now < end {
            self.step(lost);
            let least = self.now + Duration::from_micros(10);
            self.now = self.deadline().unwrap_or(end).clamp(least, end.max(least));
        }
        self.step(lost);
    }

    fn session(&self, index: u8) -> Option<u32> {
        let at = usize::from(index) % self.sessions.len().max(1);
        self.sessions.keys().nth(at).copied()
    }

    fn client(&mut self, index: u8) -> Option<&mut Peer> {
        let at = usize::from(index) % self.clients.len().max(1);
        self.clients.values_mut().nth(at)
    }

    fn act(&mut self, act: &Act<'_>) {
        match *act {
            Act::Client { key, purpose } => {
                let command = purpose.and_then(|text| Command::new(text).ok());
                let purpose = command.map_or(Purpose::Shell, Purpose::Exec);
                self.add(key, |mode, random, now| {
                    Client::new(mode, purpose, random, now)
                });
            }
            Act::Ping { key } => drop(self.add(key, Client::ping)),
            Act::Step { lost } => self.step(lost),
            Act::Wait(ms) => self.wait(Duration::from_millis(ms.into()), 0),
            Act::Type { client, bytes } => {
                if let Some(peer) = self.client(client) {
                    let bytes = pattern(peer.typed, bytes.into());
                    peer.typed += peer.client.send(&bytes);
                }
            }
            Act::Leave { client } => {
                let now = self.now;
                if let Some(peer) = self.client(client) {
                    peer.client.close(now);
                }
            }
            Act::Show { session, bytes } => self.show(session, bytes),
            Act::Read { session, bytes } => self.read(session, bytes),
            Act::Finish { session, status } => {
                if let Some(number) = self.session(session) {
                    let status = Status::from_number(status).unwrap_or(Status::Failed);
                    self.server.finish(self.now, number, status);
                    self.sessions.remove(&number);
                }
            }
            Act::Serves(serves) => self.server.set_serves(serves),
            Act::Line { peer, text } => self.forge(peer, text.as_bytes()),
            Act::Raw { peer, bytes } => self.forge(peer, bytes),
            Act::Repeat { .. } | Act::Hello { .. } | Act::Frame { .. } | Act::Sealed { .. } => {
                self.hostile(act)
            }
        }
        self.events();
    }

    fn show(&mut self, session: u8, bytes: u16) {
        let Some(number) = self.session(session) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(&number) else {
            return;
        };
        let bytes = pattern(session.shown, bytes.into());
        session.shown += self.server.write(number, Stream::Binary, &bytes);
    }

    /// What was read is what was typed, from the beginning on.
    fn read(&mut self, session: u8, bytes: u16) {
        let Some(number) = self.session(session) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(&number) else {
            return;
        };
        let mut buffer = vec![0; bytes.into()];
        let length = self.server.read(self.now, number, &mut buffer);
        if self.keyed {
            assert!(
                is_pattern(session.read, &buffer[..length]),
                "input out of order"
            );
        }
        session.read += length;
        if let (true, Some(peer)) = (self.keyed, self.clients.get(&session.peer.port())) {
            assert!(session.read <= peer.typed, "input that nobody typed");
        }
    }

    fn hostile(&mut self, act: &Act<'_>) {
        match *act {
            Act::Repeat {
                which,
                spoofed,
                change,
                cut,
            } => {
                let at = usize::from(which) % self.recorded.len().max(1);
                let Some((peer, mut bytes)) = self.recorded.get(at).cloned() else {
                    return;
                };
                // In the open mode a client's own datagrams, changed with a right hash, are the client's.
                let peer = spoofed.map_or(peer, |peer| address(SPOOFED + u16::from(peer)));
                if let Some((at, by)) = change {
                    let at = usize::from(at) % bytes.len();
                    bytes[at] ^= by;
                }
                if let Some(cut) = cut {
                    bytes.truncate(cut.into());
                }
                self.give(peer, &bytes);
            }
            Act::Hello {
                peer,
                version,
                ask,
                cookie,
                token,
            } => {
                let mut body = vec![ask % 4];
                body.extend(cookie.unwrap_or_default());
                body.resize(256 - 24 - 16, 0);
                let header = packet_header(version, 1, 0, 0, token.into());
                self.forge(peer, &open_packet(HELLO, &header, &body));
            }
            Act::Frame {
                peer,
                session,
                number,
                next,
                behind,
                window,
                stream,
                sequence,
                index,
                count,
                bytes,
            } => {
                let chunk = (
                    stream % 5,
                    u64::from(sequence),
                    index.into(),
                    count.into(),
                    bytes,
                );
                let body = frame(next.into(), behind, window, Some(chunk));
                // Of a client's own address: in the open mode the hash is right.
                let at = usize::from(peer) % self.seen_sessions.len().max(1);
                let seen = self
                    .seen_sessions
                    .iter()
                    .nth(at)
                    .map(|(&peer, &id)| (peer, id));
                let (peer, id) = match (session, seen) {
                    (None, Some(seen)) => seen,
                    (session, _) => (address(SPOOFED + u16::from(peer)), session.unwrap_or(0)),
                };
                let header = packet_header(1, 4, self.keyed.into(), id, number.into());
                self.give(peer, &open_packet(FROM_CLIENT, &header, &body));
            }
            Act::Sealed {
                peer,
                kind,
                version,
                key,
                body,
            } => {
                let key = [HELLO, FROM_CLIENT][usize::from(key % 2)];
                let header = packet_header(version, kind % 6, 0, 0, 0);
                self.forge(peer, &open_packet(key, &header, body));
            }
            _ => {}
        }
    }
}

/// The first bit says whether the server has keys, the rest what happens.
pub fn run(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let mut world = World::new(input.arbitrary().unwrap_or(false));
    for act in acts(&mut input) {
        world.act(&act);
    }
    // Whatever happened, nothing is left of it, and the next one gets in.
    world.step(0);
    world.clients.clear();
    world.server.set_serves(true);
    world.wait(GONE, 0);
    assert_eq!(world.server.sessions(), 0, "sessions without a client");
    let Some(port) = world.add(0, |mode, random, now| {
        Client::new(mode, Purpose::Shell, random, now)
    }) else {
        return;
    };
    world.wait(Duration::from_secs(1), 0);
    let is_in = world
        .sessions
        .values()
        .any(|session| session.peer == address(port));
    assert!(is_in, "nobody gets in any more");
}
