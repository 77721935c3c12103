//! Hosts of the link that are there, and those that are not.

use super::*;
use smoltcp::wire::{ArpPacket, ArpRepr, EthernetFrame, EthernetProtocol};

/// Whom a host asks for by ARP.
fn asked(nic: &FakeNic) -> Vec<Ipv4Addr> {
    let rings = nic.rings.borrow();
    let arp = |frame: &Vec<u8>| {
        let frame = EthernetFrame::new_checked(frame.as_slice()).unwrap();
        if frame.ethertype() != EthernetProtocol::Arp {
            return None;
        }
        let packet = ArpPacket::new_checked(frame.payload()).unwrap();
        let ArpRepr::EthernetIpv4 {
            target_protocol_addr,
            ..
        } = ArpRepr::parse(&packet).unwrap()
        else {
            return None;
        };
        Some(target_protocol_addr)
    };
    rings.sent.iter().filter_map(arp).collect()
}

#[test]
fn a_silent_host_holds_up_nobody_and_is_given_up() {
    let mut world = World::new(Faults::default(), 1);
    let one = world.hosts[0].bind(7).unwrap();
    let two = world.hosts[1].bind(9).unwrap();
    for _ in 0..3 {
        assert_eq!(world.send(0, one, at(77, 9), b"lost"), Ok(Sending::Taken));
    }
    assert_eq!(world.send(0, one, at(2, 9), b"there"), Ok(Sending::Taken));
    world.settle();
    assert_eq!(world.receive(1, two), [(at(1, 7), b"there".to_vec())]);
    world.until(4 * SECOND);
    assert_eq!(world.hosts[0].statistics(one).unanswered, 3);
    assert_eq!(world.hosts[0].counters().drops.unanswered, 3);
    assert_eq!(world.hosts[0].deadline(world.now), None);
    // It is asked for again after a while.
    let again = world.send(0, one, at(77, 9), b"lost");
    assert_eq!(again, Ok(Sending::Taken));
    world.until(7 * SECOND + MS);
    let again = world.send(0, one, at(77, 9), b"lost");
    assert_eq!(again, Err(NetError::Unreachable));
    let now = world.now;
    let ping = world.hosts[0].ping(address(77), 8, now + SECOND, now);
    assert_eq!(ping, Err(NetError::Unreachable));
    let other = world.hosts[0]
        .ping(address(78), 8, now + 9 * SECOND, now)
        .unwrap();
    world.until(now + 4 * SECOND);
    let ended = world.hosts[0].ended_echo();
    assert_eq!(ended, Some((other, Err(NetError::Unreachable))));
}

#[test]
fn each_host_is_asked_for_at_once_however_many_are_silent() {
    let nic = FakeNic::new(1);
    let mut stack = stack(&nic, 1);
    let id = stack.bind(7).unwrap();
    for host in 10..16 {
        let sent = stack.send(id, at(host, 9), 0, &|_| (), 0);
        assert_eq!(sent, Ok(Sending::Taken));
    }
    let mut hosts = asked(&nic);
    hosts.dedup();
    assert_eq!(hosts, (10..16).map(address).collect::<Vec<_>>());
    nic.rings.borrow_mut().sent.clear();
    stack.poll(SECOND);
    let mut hosts = asked(&nic);
    hosts.sort_unstable();
    hosts.dedup();
    assert_eq!(hosts, (10..16).map(address).collect::<Vec<_>>());
}

#[test]
fn what_waits_keeps_its_order_and_has_an_end() {
    let mut world = World::new(Faults::default(), 1);
    let one = world.hosts[0].bind(7).unwrap();
    let two = world.hosts[1].bind(9).unwrap();
    for number in 0..20 {
        world.send(0, one, at(2, 9), &[number]).unwrap();
    }
    assert_eq!(world.hosts[0].counters().drops.waiting_full, 12);
    let statistics = world.hosts[0].statistics(one);
    assert_eq!((statistics.dropped, statistics.unanswered), (12, 0));
    world.settle();
    let numbers: Vec<u8> = world
        .receive(1, two)
        .iter()
        .map(|(_, bytes)| bytes[0])
        .collect();
    assert_eq!(numbers, (0..8).collect::<Vec<_>>());
    // No socket takes another one's places.
    let host = &mut world.hosts[0];
    for socket in 1..SOCKETS_MAX as u8 {
        let id = host.bind(0).unwrap();
        for _ in 0..WAITING_MAX {
            host.send(id, at(90 + socket, 9), 0, &|_| (), 0).unwrap();
        }
    }
    host.send(one, at(90, 9), 0, &|_| (), 0).unwrap();
    assert_eq!(host.counters().drops.waiting_full, 12);
    // A socket that is closed wants nothing any more.
    host.close(one);
    assert!(host.deadline(0).is_some());
}

#[test]
fn what_is_elsewhere_goes_to_the_gateway() {
    let nic = FakeNic::new(1);
    let settings = Settings::Static {
        address: Ipv4Cidr::new(address(1), 24),
        gateway: Some(address(254)),
    };
    let mut stack = Stack::new(nic.clone(), settings, 1, 0);
    let id = stack.bind(7).unwrap();
    let far = SocketAddrV4::new([192, 168, 0, 1].into(), 9);
    stack.send(id, far, 0, &|_| (), 0).unwrap();
    assert_eq!(asked(&nic).first(), Some(&address(254)));
    // Itself, and the network's own addresses.
    for host in [1, 0, 255] {
        let sent = stack.send(id, at(host, 9), 0, &|_| (), 0);
        assert_eq!(sent, Err(NetError::Unreachable));
    }
}

#[test]
fn a_host_that_could_not_be_asked_was_not_silent() {
    let mut world = World::new(Faults::default(), 1);
    let one = world.hosts[0].bind(7).unwrap();
    let two = world.hosts[1].bind(9).unwrap();
    world.send(0, one, at(2, 9), b"waits").unwrap();
    world.nics[0].rings.borrow_mut().sent.clear();
    world.now = 2500 * MS;
    world.nics[0].rings.borrow_mut().room = 0;
    world.hosts[0].poll(world.now);
    world.now = 5400 * MS;
    world.hosts[0].poll(world.now);
    world.nics[0].rings.borrow_mut().room = 9;
    world.settle();
    assert_eq!(world.receive(1, two), [(at(1, 7), b"waits".to_vec())]);
    assert_eq!(world.hosts[0].counters().drops, Default::default());
}

#[test]
fn what_waits_for_a_device_that_stalls_is_dropped_and_counted() {
    let mut world = World::new(Faults::default(), 1);
    let one = world.hosts[0].bind(7).unwrap();
    world.send(0, one, at(2, 9), b"lost").unwrap();
    let ping = world.hosts[0].ping(address(3), 0, 9 * SECOND, 0).unwrap();
    world.nics[0].rings.borrow_mut().room = 0;
    world.hosts[0].poll(SECOND);
    assert_eq!(world.hosts[0].deadline(SECOND), Some(4 * SECOND));
    world.hosts[0].poll(4 * SECOND);
    let stalled = Err(NetError::DeviceStalled);
    assert_eq!(world.hosts[0].ended_echo(), Some((ping, stalled)));
    assert_eq!(world.hosts[0].counters().drops.device, 2);
    assert_eq!(world.hosts[0].statistics(one).dropped, 1);
}

#[test]
fn who_left_while_there_was_no_room_keeps_nothing_back() {
    let nic = FakeNic::new(1);
    let mut stack = Stack::new(nic.clone(), Settings::Dhcp, 1, 0);
    stack.poll(0);
    let asks = stack.deadline(0).unwrap();
    nic.rings.borrow_mut().room = 0;
    stack.poll(asks);
    nic.rings.borrow_mut().sent.clear();
    nic.rings.borrow_mut().room = 9;
    stack.poll(asks);
    assert_eq!(nic.rings.borrow().sent.len(), 1);
    // The next one is due when smoltcp says, not when a device would have stalled.
    assert!(
        stack
            .deadline(asks)
            .is_some_and(|at| at >= asks + 5 * SECOND)
    );
}

/// The second datagram's patience ends between two questions: without an end there, its deadline stayed in the past.
#[test]
fn who_waits_between_two_questions_is_given_up_on_time() {
    let mut world = World::new(Faults::default(), 1);
    let id = world.hosts[0].bind(7).unwrap();
    for at_ms in [0, 98] {
        world.now = at_ms * MS;
        assert_eq!(world.send(0, id, at(3, 9), b"x"), Ok(Sending::Taken));
    }
    let mut polls = 0;
    while let Some(due) = world.hosts[0].deadline(world.now) {
        world.now = due.max(world.now + 1000);
        world.hosts[0].poll(world.now);
        polls += 1;
        assert!(polls < 20, "it is polled again and again");
    }
    assert_eq!(world.now, 3098 * MS);
    assert_eq!(world.hosts[0].statistics(id).unanswered, 2);
}
