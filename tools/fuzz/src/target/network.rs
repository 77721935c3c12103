//! Frames into the whole IP stack, by a link full of hostile hosts, a DHCP server among them, while time passes and
//! programs use their sockets.

use std::net::{Ipv4Addr, SocketAddrV4};

use arbitrary::{Arbitrary, Unstructured};
use ipc::proto::net::DATAGRAM_MAX;
use net::fake::FakeNic;
use net::settings::Settings;
use net::stack::{DATAGRAMS_MAX, SOCKETS_MAX, SocketId, Stack};
use smoltcp::wire::Ipv4Cidr;

use super::acts;
use crate::wire::{ethernet, icmp, ipv4, udp};

const MS: u64 = 1_000_000;
/// Longest that one act waits, in milliseconds: over half an hour.
const WAIT_MAX: u64 = 1 << 21;
/// Polls in one wait, at most: each second the stack may repeat something for each of those who wait for a neighbour.
const POLLS_PER_SECOND: u64 = 200;

const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OWN: [u8; 4] = [10, 0, 0, 2];

/// An address, often one that matters.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Address {
    Own,
    Neighbour(u8),
    Any([u8; 4]),
    Broadcast,
    NetworkBroadcast,
    Unspecified,
    Loopback,
    Multicast,
}

impl Address {
    const fn bytes(self) -> [u8; 4] {
        match self {
            Self::Own => OWN,
            Self::Neighbour(host) => [10, 0, 0, host],
            Self::Any(bytes) => bytes,
            Self::Broadcast => [255; 4],
            Self::NetworkBroadcast => [10, 0, 0, 255],
            Self::Unspecified => [0; 4],
            Self::Loopback => [127, 0, 0, 1],
            Self::Multicast => [224, 0, 0, 1],
        }
    }
}

/// What a DHCP server answers (RFC 2132, 9.6).
#[derive(Arbitrary, Clone, Copy, Debug)]
#[repr(u8)]
enum Answer {
    Offer = 2,
    Acknowledged = 5,
    Refused = 6,
}

/// What happens to a host.
#[derive(Arbitrary, Debug)]
enum Act<'a> {
    Raw(&'a [u8]),
    Arp {
        operation: u8,
        mac: [u8; 6],
        from: Address,
        to: Address,
    },
    Ip {
        from: Address,
        to: Address,
        protocol: u8,
        fragment: u16,
        payload: &'a [u8],
    },
    Udp {
        from: Address,
        to: Address,
        source: u16,
        /// One of those that somebody has, or any.
        port: Result<u8, u16>,
        payload: &'a [u8],
    },
    Icmp {
        from: Address,
        to: Address,
        kind: u8,
        code: u8,
        rest: &'a [u8],
    },
    /// What a DHCP server says.
    Dhcp {
        from: Address,
        /// Offer, acknowledgement, refusal, or any.
        kind: Result<Answer, u8>,
        yours: Address,
        server: Address,
        /// Seconds.
        lease: Result<u8, u32>,
        router: Address,
        mask: u8,
        options: &'a [u8],
        is_asked: bool,
    },
    Wait(u32),
    Room(u8),
    Bind(u16),
    Close(u8),
    Send {
        socket: u8,
        to: Address,
        port: u16,
        bytes: u16,
    },
    Ping {
        to: Address,
        bytes: u16,
    },
    Take {
        socket: u8,
        count: u8,
    },
}

struct Host {
    now: u64,
    stack: Stack<FakeNic>,
    nic: FakeNic,
    sockets: Vec<SocketId>,
    /// Frames that it was given, and their bytes.
    given: (u64, u64),
    /// The transaction that its DHCP client is in.
    transaction: [u8; 4],
    /// It sends nothing that is no answer.
    is_passive: bool,
}

impl Host {
    fn new(asks: bool) -> Self {
        let nic = FakeNic::new(2);
        let settings = if asks {
            Settings::Dhcp
        } else {
            let address = Ipv4Cidr::new(OWN.into(), 24);
            let gateway = Some(Ipv4Addr::new(10, 0, 0, 1));
            Settings::Static { address, gateway }
        };
        let mut stack = Stack::new(nic.clone(), settings, 2, 0);
        let ports = [7, 5555];
        let sockets = ports
            .into_iter()
            .flat_map(|port| stack.bind(port))
            .collect();
        Self {
            now: 0,
            stack,
            nic,
            sockets,
            given: (0, 0),
            transaction: [0; 4],
            is_passive: !asks,
        }
    }

    fn socket(&self, index: u8) -> Option<SocketId> {
        self.sockets.get(usize::from(index)).copied()
    }

    /// Sees what it sent.
    fn look(&mut self) {
        for frame in self.nic.rings.borrow_mut().sent.drain(..) {
            assert!((14..=1514).contains(&frame.len()), "{} bytes", frame.len());
            let is_dhcp = frame.get(34..38) == Some(&[0, 68, 0, 67]);
            if let (true, Some(transaction)) = (is_dhcp, frame.get(46..50)) {
                self.transaction.copy_from_slice(transaction);
            }
        }
    }

    fn poll(&mut self) {
        self.stack.poll(self.now);
        self.look();
    }

    fn take(&mut self, frame: Vec<u8>) {
        // The driver lets through what an Ethernet frame can have.
        if !(14..=1514).contains(&frame.len()) {
            return;
        }
        self.given.0 += 1;
        self.given.1 += frame.len() as u64;
        self.nic.rings.borrow_mut().arrived.push_back(frame);
        self.poll();
    }

    fn take_ip(&mut self, datagram: &[u8]) {
        self.take(ethernet(OWN_MAC, [2, 0, 0, 0, 0, 1], 0x0800, datagram));
    }

    /// Lets time pass, as its owner does: it is polled when it says, and does not say so without end.
    fn wait(&mut self, time: u64) {
        let end = self.now + time;
        let mut polls = 0;
        while self.now < end {
            let due = self.stack.deadline(self.now).unwrap_or(end);
            // smoltcp counts in microseconds.
            self.now = due.clamp(self.now + 1000, end.max(self.now + 1000));
            self.poll();
            polls += 1;
        }
        let most = 100 + POLLS_PER_SECOND * (1 + time / (1000 * MS));
        assert!(polls <= most, "{polls} polls in {} ms", time / MS);
    }

    fn act(&mut self, act: &Act<'_>) {
        match *act {
            Act::Raw(bytes) => self.take([&OWN_MAC[..], bytes].concat()),
            Act::Arp {
                operation,
                mac,
                from,
                to,
            } => {
                let head = [0, 1, 8, 0, 6, 4, 0, operation];
                let parts = [&head[..], &mac, &from.bytes(), &OWN_MAC, &to.bytes()];
                self.take(ethernet([0xff; 6], mac, 0x0806, &parts.concat()));
            }
            Act::Ip {
                from,
                to,
                protocol,
                fragment,
                payload,
            } => self.take_ip(&ipv4(from.bytes(), to.bytes(), protocol, fragment, payload)),
            Act::Udp {
                from,
                to,
                source,
                port,
                payload,
            } => {
                let port = match port {
                    Ok(index) => held_port(&mut self.stack, &self.sockets, index),
                    Err(port) => port,
                };
                self.take_udp(from, to, [source, port], payload);
            }
            Act::Icmp {
                from,
                to,
                kind,
                code,
                rest,
            } => self.take_ip(&ipv4(
                from.bytes(),
                to.bytes(),
                1,
                0,
                &icmp(kind, code, rest),
            )),
            Act::Dhcp { .. } => self.lend(act),
            Act::Wait(ms) => self.wait(u64::from(ms) % WAIT_MAX * MS),
            Act::Room(room) => self.nic.rings.borrow_mut().room = room.into(),
            Act::Bind(port) => self.sockets.extend(self.stack.bind(port)),
            Act::Close(index) => {
                if usize::from(index) < self.sockets.len() {
                    let id = self.sockets.remove(index.into());
                    self.stack.close(id);
                }
            }
            Act::Send {
                socket,
                to,
                port,
                bytes,
            } => {
                self.is_passive = false;
                if let Some(id) = self.socket(socket) {
                    let to = SocketAddrV4::new(to.bytes().into(), port);
                    let fill = |room: &mut [u8]| room.fill(7);
                    let _ = self.stack.send(id, to, bytes.into(), &fill, self.now);
                }
            }
            Act::Ping { to, bytes } => {
                self.is_passive = false;
                let deadline = self.now + 1000 * MS;
                let _ = self
                    .stack
                    .ping(to.bytes().into(), bytes.into(), deadline, self.now);
            }
            Act::Take { socket, count } => {
                if let Some(id) = self.socket(socket) {
                    self.stack.discard(id, count.into());
                }
            }
        }
        self.look();
        while self.stack.ended_echo().is_some() {}
    }

    fn take_udp(&mut self, from: Address, to: Address, ports: [u16; 2], payload: &[u8]) {
        let (from, to) = (from.bytes(), to.bytes());
        self.take_ip(&ipv4(from, to, 17, 0, &udp(from, to, ports, payload)));
    }

    /// A message of a DHCP server (RFC 2131, figure 1).
    fn lend(&mut self, act: &Act<'_>) {
        let &Act::Dhcp {
            from,
            kind,
            yours,
            server,
            lease,
            router,
            mask,
            options,
            is_asked,
        } = act
        else {
            return;
        };
        let mut message = vec![2, 1, 6, 0];
        message.extend(if is_asked { self.transaction } else { [7; 4] });
        message.extend([0; 8]);
        message.extend(yours.bytes());
        message.extend(server.bytes());
        message.extend([0; 4]);
        message.extend(OWN_MAC);
        message.extend([0; 10 + 64 + 128]);
        message.extend([99, 130, 83, 99]);
        // Message type, server, lease time, router, netmask.
        let kind = kind.map_or_else(|any| any, |kind| kind as u8);
        message.extend([53, 1, kind, 54, 4]);
        message.extend(server.bytes());
        message.extend([51, 4]);
        let lease = lease.map_or_else(|any| any, u32::from);
        message.extend(lease.to_be_bytes());
        message.extend([3, 4]);
        message.extend(router.bytes());
        message.extend([1, 4]);
        message.extend(
            u32::MAX
                .checked_shl(32 - u32::from(mask % 33))
                .unwrap_or(0)
                .to_be_bytes(),
        );
        message.extend(options);
        message.push(255);
        self.take_udp(from, Address::Broadcast, [67, 68], &message);
    }

    /// What holds at all times.
    fn check(&mut self) {
        let counters = self.stack.counters();
        let arrived = self.nic.rings.borrow().arrived.len() as u64;
        if arrived == 0 {
            let received = (counters.received, counters.received_bytes);
            assert_eq!(received, self.given, "each frame is counted once");
        }
        let report = self.stack.report();
        assert!(usize::from(report.sockets) <= SOCKETS_MAX);
        assert_eq!(usize::from(report.sockets), self.sockets.len());
        if let Some((address, prefix)) = report.address {
            let address = Ipv4Addr::from(address);
            assert!(prefix <= 32);
            let is_host = !address.is_unspecified()
                && !address.is_loopback()
                && !address.is_multicast()
                && !address.is_broadcast();
            assert!(is_host, "{address} is no host's");
        }
        for &id in &self.sockets {
            let datagrams = (0..).map_while(|index| self.stack.datagram(id, index));
            let mut count = 0;
            for (_, bytes) in datagrams {
                assert!(bytes.len() <= DATAGRAM_MAX.into());
                count += 1;
            }
            assert!(count <= DATAGRAMS_MAX);
        }
        if self.is_passive {
            // One answer for a frame at most. That to a datagram for a port that nobody has quotes it behind 28 bytes.
            assert!(counters.sent <= counters.received);
            assert!(counters.sent_bytes <= counters.received_bytes + 28 * counters.received);
        }
    }
}

fn held_port(stack: &mut Stack<FakeNic>, sockets: &[SocketId], index: u8) -> u16 {
    let id = sockets.get(usize::from(index) % sockets.len().max(1));
    id.map_or(0, |&id| stack.port(id))
}

/// The first bit says whether the host asks for its address.
pub fn run(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let mut host = Host::new(input.arbitrary().unwrap_or(false));
    host.poll();
    for act in acts(&mut input) {
        host.act(&act);
        host.check();
    }
    // Whatever happened, it goes on: the next frame is taken.
    host.nic.rings.borrow_mut().room = 256;
    host.wait(60_000 * MS);
    host.check();
}
