//! Two hosts and a cable, and one host and whatever anybody sends it.

mod faults;
mod hostile;
mod lease;
mod neighbours;

use core::net::SocketAddrV4;

use super::*;
use crate::fake::{Cable, FakeNic, Faults};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

fn settings(host: u8) -> Settings {
    Settings::Static {
        address: Ipv4Cidr::new(address(host), 24),
        gateway: None,
    }
}

fn stack(nic: &FakeNic, host: u8) -> Stack<FakeNic> {
    Stack::new(nic.clone(), settings(host), host.into(), 0)
}

/// Two hosts, 10.0.0.1 and 10.0.0.2.
struct World {
    now: u64,
    hosts: [Stack<FakeNic>; 2],
    nics: [FakeNic; 2],
    cable: Cable,
}

impl World {
    fn new(faults: Faults, seed: u64) -> Self {
        let nics = [FakeNic::new(1), FakeNic::new(2)];
        Self {
            now: 0,
            hosts: [stack(&nics[0], 1), stack(&nics[1], 2)],
            cable: Cable::new(nics.clone(), faults, seed),
            nics,
        }
    }

    /// Lets everything happen that happens by itself at this moment.
    fn settle(&mut self) {
        loop {
            for host in &mut self.hosts {
                host.poll(self.now);
            }
            let more = |host: &mut Stack<FakeNic>| host.has_more;
            let waits = self.hosts.iter_mut().any(more);
            if !self.cable.carry() && !waits {
                break;
            }
        }
    }

    /// Goes on until a time.
    fn until(&mut self, time: u64) {
        self.settle();
        while self.now < time {
            let deadlines = self
                .hosts
                .iter_mut()
                .filter_map(|host| host.deadline(self.now));
            let next = deadlines.min().unwrap_or(time);
            // A deadline that is now is one that smoltcp rounds to its microseconds.
            self.now = next.clamp(self.now + 1000, time.max(self.now + 1000));
            self.settle();
        }
    }

    fn send(
        &mut self,
        from: usize,
        id: SocketId,
        to: SocketAddrV4,
        bytes: &[u8],
    ) -> Result<Sending, NetError> {
        let fill = |room: &mut [u8]| room.copy_from_slice(bytes);
        self.hosts[from].send(id, to, bytes.len(), &fill, self.now)
    }

    /// Takes all that a socket has.
    fn receive(&mut self, host: usize, id: SocketId) -> Vec<(SocketAddrV4, Vec<u8>)> {
        let stack = &mut self.hosts[host];
        let all: Vec<_> = (0..)
            .map_while(|index| stack.datagram(id, index))
            .map(|(from, bytes)| (from, bytes.to_vec()))
            .collect();
        stack.discard(id, all.len());
        all
    }
}

use ipc::proto::net::NetError;

fn at(host: u8, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(address(host), port)
}

#[test]
fn a_datagram_of_every_length_arrives_as_it_was_sent() {
    let mut world = World::new(Faults::default(), 1);
    let one = world.hosts[0].bind(7).unwrap();
    let two = world.hosts[1].bind(9).unwrap();
    let mut bytes = 0;
    for len in 0..=1472 {
        let datagram: Vec<u8> = (0..len).map(|at| (at * 7 + len) as u8).collect();
        assert_eq!(world.send(0, one, at(2, 9), &datagram), Ok(Sending::Taken));
        world.settle();
        assert_eq!(world.receive(1, two), [(at(1, 7), datagram)]);
        bytes += len as u64;
    }
    let sent = world.hosts[0].statistics(one);
    assert_eq!((sent.sent, sent.sent_bytes), (1473, bytes));
    let received = world.hosts[1].statistics(two);
    assert_eq!((received.received, received.received_bytes), (1473, bytes));
    assert_eq!(world.hosts[1].counters().drops, Default::default());
    assert_eq!(
        world.send(0, one, at(2, 9), &[0; 1473]),
        Err(NetError::TooLarge)
    );
}

#[test]
fn idle_hosts_have_nothing_to_do() {
    let mut world = World::new(Faults::default(), 1);
    let id = world.hosts[0].bind(7).unwrap();
    world.send(0, id, at(2, 9), b"x").unwrap();
    world.settle();
    assert_eq!(
        world.hosts.each_mut().map(|host| host.deadline(0)),
        [None; 2]
    );
}

#[test]
fn a_port_has_one_socket_and_sockets_have_an_end() {
    let mut world = World::new(Faults::default(), 1);
    let host = &mut world.hosts[0];
    let first = host.bind(7).unwrap();
    assert_eq!(host.bind(7), Err(NetError::PortTaken));
    assert_eq!(host.bind(68), Err(NetError::PortTaken));
    let others: Vec<_> = (1..SOCKETS_MAX).map(|_| host.bind(0).unwrap()).collect();
    let mut ports: Vec<_> = others.iter().map(|id| host.port(*id)).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), SOCKETS_MAX - 1);
    assert!(ports.iter().all(|port| *port >= 49152));
    assert_eq!(host.bind(0), Err(NetError::Busy));
    host.close(first);
    assert_eq!((host.port(first), host.datagram(first, 0)), (0, None));
    assert_eq!(host.bind(7), Ok(first));
}

#[test]
fn what_a_slow_program_does_not_take_is_counted() {
    let mut world = World::new(Faults::default(), 1);
    let one = world.hosts[0].bind(7).unwrap();
    let two = world.hosts[1].bind(9).unwrap();
    for number in 0..100 {
        world.send(0, one, at(2, 9), &[number]).unwrap();
        world.settle();
    }
    let kept = world.receive(1, two);
    let numbers: Vec<u8> = kept.iter().map(|(_, bytes)| bytes[0]).collect();
    assert_eq!(numbers, (0..DATAGRAMS_MAX as u8).collect::<Vec<_>>());
    let lost = 100 - DATAGRAMS_MAX as u64;
    assert_eq!(world.hosts[1].statistics(two).queue_full, lost);
    assert_eq!(world.hosts[1].counters().drops.queue_full, lost);
}

#[test]
fn a_device_without_room_is_asked_again() {
    let mut world = World::new(Faults::default(), 1);
    let one = world.hosts[0].bind(7).unwrap();
    let two = world.hosts[1].bind(9).unwrap();
    world.send(0, one, at(2, 9), b"first").unwrap();
    world.settle();
    world.nics[0].rings.borrow_mut().room = 2;
    for expected in [
        Sending::Taken,
        Sending::Taken,
        Sending::NoRoom,
        Sending::NoRoom,
    ] {
        assert_eq!(world.send(0, one, at(2, 9), b"more"), Ok(expected));
    }
    world.settle();
    assert_eq!(world.receive(1, two).len(), 3);
    assert_eq!(world.hosts[0].statistics(one).sent, 3);
    assert_eq!(world.send(0, one, at(2, 9), b"more"), Ok(Sending::Taken));
}

#[test]
fn a_port_that_nobody_has_is_told_to_the_sender() {
    let mut world = World::new(Faults::default(), 1);
    let one = world.hosts[0].bind(7).unwrap();
    world.send(0, one, at(2, 9), b"x").unwrap();
    world.settle();
    assert_eq!(world.hosts[0].statistics(one).refused, 1);
    assert_eq!(world.hosts[1].counters().drops.no_port, 1);
}

#[test]
fn echoes_come_back_or_say_why_not() {
    let mut world = World::new(Faults::default(), 1);
    let ping = |world: &mut World, host: Ipv4Addr, bytes| {
        let (now, deadline) = (world.now, world.now + SECOND);
        world.hosts[0].ping(host, bytes, deadline, now)
    };
    for bytes in [0, 56, 1472] {
        let id = ping(&mut world, address(2), bytes).unwrap();
        world.settle();
        assert_eq!(world.hosts[0].ended_echo(), Some((id, Ok(0))));
    }
    let elsewhere = Ipv4Addr::new(192, 168, 0, 1);
    assert_eq!(ping(&mut world, elsewhere, 0), Err(NetError::Unreachable));
    for nobody in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "127.0.0.1"] {
        let host = nobody.parse().unwrap();
        assert_eq!(ping(&mut world, host, 0), Err(NetError::BadArgument));
    }
    assert_eq!(ping(&mut world, address(2), 1473), Err(NetError::TooLarge));
    // The other host is gone, but where it was is still known.
    world.cable = Cable::new(
        world.nics.clone(),
        Faults {
            loss: 1,
            ..Faults::default()
        },
        1,
    );
    let id = ping(&mut world, address(2), 56).unwrap();
    let end = world.now + 2 * SECOND;
    world.until(end);
    assert_eq!(
        world.hosts[0].ended_echo(),
        Some((id, Err(NetError::Timeout)))
    );
    assert_eq!(world.hosts[0].ended_echo(), None);
}

#[test]
fn without_an_address_nobody_is_reached() {
    let nic = FakeNic::new(1);
    let mut stack = Stack::new(nic.clone(), Settings::None, 1, 0);
    let id = stack.bind(7).unwrap();
    let sent = stack.send(id, at(2, 9), 0, &|_| (), 0);
    assert_eq!(sent, Err(NetError::Unreachable));
    stack.poll(0);
    assert_eq!(
        (stack.deadline(0), nic.rings.borrow().sent.len()),
        (None, 0)
    );
    let report = stack.report();
    assert_eq!(
        (report.address, report.configured),
        (None, Configured::Wrong)
    );
}

#[test]
fn senders_are_told_of_a_missing_port_at_a_bounded_rate() {
    let mut world = World::new(Faults::default(), 1);
    let one = world.hosts[0].bind(7).unwrap();
    let knock = |world: &mut World, times| {
        for _ in 0..times {
            world.send(0, one, at(2, 9), b"").unwrap();
            world.settle();
        }
        world.hosts[0].statistics(one).refused
    };
    assert_eq!(knock(&mut world, 60), 50);
    world.until(50 * MS);
    assert_eq!(knock(&mut world, 60), 55);
    world.until(10 * SECOND);
    assert_eq!(knock(&mut world, 60), 105);
    assert_eq!(world.hosts[1].counters().drops.no_port, 180);
}

#[test]
fn echoes_that_nobody_asked_for_are_counted() {
    let mut world = World::new(Faults::default(), 1);
    let id = world.hosts[0].ping(address(2), 8, SECOND, 0).unwrap();
    world.hosts[0].poll(0);
    world.cable.carry();
    for host in [1, 0, 1] {
        world.hosts[host].poll(0);
        world.cable.carry();
    }
    let answer = world.nics[0].rings.borrow().arrived.back().cloned();
    world.settle();
    assert_eq!(world.hosts[0].ended_echo(), Some((id, Ok(0))));
    let again = |world: &mut World, frame: Vec<u8>| {
        world.nics[0].rings.borrow_mut().arrived.push_back(frame);
        world.settle();
        world.hosts[0].counters().drops.unasked
    };
    let mut frame = answer.unwrap();
    assert_eq!(again(&mut world, frame.clone()), 1);
    // By another identifier; the checksum is made good where the data is.
    frame[39] ^= 1;
    frame[43] ^= 1;
    assert_eq!(again(&mut world, frame), 2);
}

#[test]
fn echoes_at_once_have_different_numbers() {
    let mut world = World::new(Faults::default(), 1);
    let far = world.hosts[0].ping(address(99), 0, 60 * SECOND, 0).unwrap();
    for _ in 0..=u16::MAX {
        let near = world.hosts[0].ping(address(2), 0, SECOND, 0).unwrap();
        assert_ne!(near, far);
        world.settle();
        assert_eq!(world.hosts[0].ended_echo(), Some((near, Ok(0))));
    }
}

#[test]
fn the_port_of_dhcp_is_nobody_s_where_the_address_was_said() {
    let mut world = World::new(Faults::default(), 1);
    let one = world.hosts[0].bind(7).unwrap();
    world.send(0, one, at(2, 68), b"x").unwrap();
    world.settle();
    assert_eq!(world.hosts[1].counters().drops.no_port, 1);
}
