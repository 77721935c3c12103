//! Clients and a server on a link that a test can see, damage and slow down, in a time of its own.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use fastrand::Rng;

use crate::packet::Kind;
use crate::{
    Client, ClientEvent, Command, DATAGRAM_MAX, Instant, Key, KeyRing, Mode, Purpose, Random,
    Server, ServerEvent, ServerMode,
};

pub(super) fn random(seed: u64) -> Random {
    let mut rng = Rng::with_seed(seed);
    Box::new(move |bytes| rng.fill(bytes))
}

pub(super) fn key(byte: u8) -> Key {
    Key::new([byte; 32])
}

pub(super) fn ring() -> KeyRing {
    let file = format!("control {}\nobserve {}\n", key(1).to_hex(), key(2).to_hex());
    KeyRing::parse(file.as_bytes()).unwrap()
}

/// A server of each mode, and what a client needs for it.
pub(super) fn modes() -> [(ServerMode, Mode); 2] {
    [
        (ServerMode::Open, Mode::Open),
        (ServerMode::Keyed(ring()), Mode::Keyed(key(1))),
    ]
}

pub(super) fn exec(line: &str) -> Purpose {
    Purpose::Exec(Command::new(line).unwrap())
}

pub(super) fn address(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, 2), port)
}

/// Many times what any of these tests takes.
const STEPS_MAX: u32 = 400_000;

/// How a link is: chances in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    pub loss: u8,
    pub doubled: u8,
    pub damaged: u8,
    /// The server gets none of these, and clients none of those.
    pub lost_up: Option<Kind>,
    pub lost_down: Option<Kind>,
    /// Each datagram takes between the first and the second of these, in microseconds: the more they differ, the more
    /// are reordered.
    pub delay: (u64, u64),
}

/// A datagram under way.
struct Flying {
    arrives: Instant,
    to_server: bool,
    peer: SocketAddrV4,
    bytes: Vec<u8>,
}

/// What went over it.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub to_server: Vec<(SocketAddrV4, Vec<u8>)>,
    pub to_clients: Vec<(SocketAddrV4, Vec<u8>)>,
}

pub(super) struct World {
    pub now: Instant,
    pub server: Server,
    pub clients: Vec<Client>,
    pub faults: Faults,
    pub seen: Seen,
    rng: Rng,
    flying: Vec<Flying>,
}

impl World {
    pub(super) fn new(mode: ServerMode, faults: Faults, seed: u64) -> Self {
        Self {
            now: Instant::from_nanos(1_000_000_000),
            server: Server::new(mode, random(seed)),
            clients: Vec::new(),
            faults,
            seen: Seen::default(),
            rng: Rng::with_seed(seed ^ 0x5eed),
            flying: Vec::new(),
        }
    }
    /// Adds a client; gives its index, which is its port, too.
    pub(super) fn client(&mut self, mode: Mode, purpose: Purpose) -> usize {
        let random = random(self.rng.u64(..));
        let client = Client::new(mode, purpose, random, self.now);
        self.clients.push(client);
        self.clients.len() - 1
    }
    pub(super) fn ping(&mut self, mode: Mode) -> usize {
        let random = random(self.rng.u64(..));
        self.clients.push(Client::ping(mode, random, self.now));
        self.clients.len() - 1
    }

    fn chance(&mut self, percent: u8) -> bool {
        self.rng.u8(0..100) < percent
    }
    /// Puts a datagram on the link.
    pub(super) fn fly(&mut self, to_server: bool, peer: SocketAddrV4, mut bytes: Vec<u8>) {
        let seen = if to_server {
            &mut self.seen.to_server
        } else {
            &mut self.seen.to_clients
        };
        seen.push((peer, bytes.clone()));
        let is_kind = |kind| bytes.get(4) == Some(&(kind as u8));
        let lost = if to_server {
            self.faults.lost_up
        } else {
            self.faults.lost_down
        };
        let is_lost = lost.is_some_and(is_kind);
        if self.chance(self.faults.loss) || is_lost {
            return;
        }
        if self.chance(self.faults.damaged) && !bytes.is_empty() {
            let at = self.rng.usize(..bytes.len());
            bytes[at] ^= 1 << self.rng.u8(..8);
        }
        let copies = if self.chance(self.faults.doubled) {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let (least, most) = self.faults.delay;
            let delay = Duration::from_micros(self.rng.u64(least..=most));
            self.flying.push(Flying {
                arrives: self.now + delay,
                to_server,
                peer,
                bytes: bytes.clone(),
            });
        }
    }

    /// Lets everybody send what is due, and goes on to the next moment at which anything happens.
    pub(super) fn step(&mut self) {
        let mut datagram = [0; DATAGRAM_MAX];
        while let Some((peer, length)) = self.server.transmit(self.now, &mut datagram) {
            self.fly(false, peer, datagram[..length].to_vec());
        }
        for index in 0..self.clients.len() {
            while let Some(length) = self.clients[index].transmit(self.now, &mut datagram) {
                let peer = address(u16::try_from(index).unwrap());
                self.fly(true, peer, datagram[..length].to_vec());
            }
        }
        let deadlines = self.clients.iter().filter_map(Client::deadline);
        let next = (deadlines.chain(self.server.deadline()))
            .chain(self.flying.iter().map(|flying| flying.arrives))
            .min()
            .unwrap_or(self.now + Duration::from_millis(1));
        self.now = next.max(self.now + Duration::from_nanos(1));
        let now = self.now;
        let (arrived, flying) = (self.flying.drain(..)).partition(|flying| flying.arrives <= now);
        self.flying = flying;
        let mut arrived: Vec<Flying> = arrived;
        arrived.sort_by_key(|flying| flying.arrives);
        for flying in arrived {
            if flying.to_server {
                self.server.receive(now, flying.peer, &flying.bytes);
            } else if let Some(client) = self.clients.get_mut(usize::from(flying.peer.port())) {
                client.receive(now, &flying.bytes);
            }
        }
    }

    /// Steps until `done` gives something; panics after so many steps that the ends must be turning round and round.
    pub(super) fn until<T>(&mut self, mut done: impl FnMut(&mut Self) -> Option<T>) -> T {
        for _ in 0..STEPS_MAX {
            if let Some(result) = done(self) {
                return result;
            }
            self.step();
        }
        panic!("it did not come to this within {STEPS_MAX} steps");
    }
    pub(super) fn server_event(&mut self) -> ServerEvent {
        self.until(|world| world.server.event())
    }
    pub(super) fn client_event(&mut self, index: usize) -> ClientEvent {
        self.until(|world| world.clients[index].event())
    }
    /// Steps for so long.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }
    /// Hands the server a datagram at once; gives what it answers at once.
    pub(super) fn ask(&mut self, peer: SocketAddrV4, bytes: &[u8]) -> Vec<(SocketAddrV4, Vec<u8>)> {
        self.server.receive(self.now, peer, bytes);
        let mut datagram = [0; DATAGRAM_MAX];
        core::iter::from_fn(|| {
            let (peer, length) = self.server.transmit(self.now, &mut datagram)?;
            Some((peer, datagram[..length].to_vec()))
        })
        .collect()
    }
}
