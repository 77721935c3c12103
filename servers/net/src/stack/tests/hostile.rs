//! Frames that anybody on the link might send.

use super::*;
use proptest::prelude::*;

/// Frames of each kind, as one host sends them to the other.
fn samples() -> Vec<Vec<u8>> {
    let mut world = World::new(Faults::default(), 1);
    let one = world.hosts[0].bind(7).unwrap();
    world.hosts[1].bind(9).unwrap();
    let mut frames = Vec::new();
    let mut gather = |world: &mut World| {
        for _ in 0..4 {
            for host in &mut world.hosts {
                host.poll(0);
            }
            for nic in &world.nics {
                frames.extend(nic.rings.borrow().sent.iter().cloned());
            }
            world.cable.carry();
        }
    };
    // ARP both ways, a datagram, a port that is not there, an echo both ways.
    world.send(0, one, at(2, 9), b"a datagram").unwrap();
    gather(&mut world);
    world.send(0, one, at(2, 10), b"to nobody").unwrap();
    gather(&mut world);
    world.hosts[0].ping(address(2), 56, SECOND, 0).unwrap();
    gather(&mut world);
    // And all of it for the host that is to take it.
    for frame in &mut frames {
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    }
    frames
}

/// A host, its device, and a socket that is answered to.
fn victim() -> (Stack<FakeNic>, FakeNic) {
    let nic = FakeNic::new(2);
    let mut host = stack(&nic, 2);
    host.bind(9).unwrap();
    host.bind(7).unwrap();
    host.ping(address(1), 56, SECOND, 0).unwrap();
    (host, nic)
}

/// Gives a host a frame; it goes on, and has counted it.
fn take(host: &mut Stack<FakeNic>, nic: &FakeNic, frame: &[u8]) {
    let before = host.counters().received;
    nic.rings.borrow_mut().sent.clear();
    nic.rings.borrow_mut().arrived.push_back(frame.to_vec());
    host.poll(0);
    assert_eq!(host.counters().received, before + 1);
}

#[test]
fn frames_that_end_anywhere_are_dropped() {
    let (mut host, nic) = victim();
    for frame in samples() {
        for len in 0..=frame.len() {
            take(&mut host, &nic, &frame[..len]);
        }
    }
    assert!(host.counters().drops.malformed > 0);
}

/// Sets the checksums of an IPv4 frame right, so that what is behind them is looked at.
fn seal(frame: &mut [u8]) {
    use smoltcp::wire::{Icmpv4Packet, IpProtocol, Ipv4Packet, UdpPacket};
    let Some(bytes) = frame.get_mut(14..) else {
        return;
    };
    let Ok(mut packet) = Ipv4Packet::new_checked(bytes) else {
        return;
    };
    packet.fill_checksum();
    let (from, to) = (packet.src_addr().into(), packet.dst_addr().into());
    match packet.next_header() {
        IpProtocol::Udp => {
            if let Ok(mut datagram) = UdpPacket::new_checked(packet.payload_mut()) {
                datagram.fill_checksum(&from, &to);
            }
        }
        IpProtocol::Icmp => {
            if let Ok(mut message) = Icmpv4Packet::new_checked(packet.payload_mut()) {
                message.fill_checksum();
            }
        }
        _ => {}
    }
}

#[test]
fn a_fragment_is_no_datagram() {
    let (mut host, nic) = victim();
    let is_datagram = |frame: &&Vec<u8>| frame[12..14] == [8, 0] && frame[23] == 17;
    let frames = samples();
    let datagram = frames.iter().find(is_datagram).unwrap();
    for (flags, offset) in [(0x20, 0), (0, 1), (0x20, 1)] {
        let mut frame = datagram.clone();
        (frame[20], frame[21]) = (flags, offset);
        seal(&mut frame);
        take(&mut host, &nic, &frame);
    }
    assert_eq!(host.counters().drops.fragment, 3);
    assert!(host.datagram(host_socket(), 0).is_none());
}

fn host_socket() -> SocketId {
    // The first that `victim` binds is the first of any host.
    stack(&FakeNic::new(3), 3).bind(9).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn changed_frames_are_survived(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        sealed in any::<bool>(),
    ) {
        let (mut host, nic) = victim();
        let samples = samples();
        let mut frame = which.get(&samples).clone();
        // Behind the addresses, so that it is for this host.
        for (at, byte) in changes {
            let at = 12 + at.index(frame.len() - 12);
            frame[at] = byte;
        }
        if let Some(cut) = cut {
            frame.truncate(cut.index(frame.len() + 1));
        }
        if sealed {
            seal(&mut frame);
        }
        take(&mut host, &nic, &frame);
        take(&mut host, &nic, &frame);
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), ethertype in 0..3) {
        let (mut host, nic) = victim();
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        frame.extend([[8, 0], [8, 6], [0x86, 0xdd]][ethertype as usize]);
        frame.extend(bytes);
        take(&mut host, &nic, &frame);
        seal(&mut frame);
        take(&mut host, &nic, &frame);
    }
}
