//! An address from a DHCP server, which may say anything.

use super::*;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    DhcpMessageType, DhcpPacket, DhcpRepr, EthernetFrame, EthernetRepr, IpProtocol, Ipv4Packet,
    Ipv4Repr, UdpPacket, UdpRepr,
};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
const MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);

/// What the server lends.
#[derive(Clone, Copy)]
struct Offer {
    address: Ipv4Addr,
    mask: Ipv4Addr,
    router: Ipv4Addr,
    seconds: u32,
    from: Ipv4Addr,
}

const GOOD: Offer = Offer {
    address: OURS,
    mask: MASK,
    router: SERVER,
    seconds: 60,
    from: SERVER,
};

/// The server's answer to a frame, if it is a client's message.
fn answer(frame: &[u8], offer: &Offer) -> Option<Vec<u8>> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
    if packet.next_header() != IpProtocol::Udp {
        return None;
    }
    let datagram = UdpPacket::new_checked(packet.payload()).ok()?;
    let message = DhcpPacket::new_checked(datagram.payload()).ok()?;
    let asked = DhcpRepr::parse(&message).ok()?;
    let message_type = match asked.message_type {
        DhcpMessageType::Discover => DhcpMessageType::Offer,
        DhcpMessageType::Request => DhcpMessageType::Ack,
        _ => return None,
    };
    let dhcp = DhcpRepr {
        message_type,
        your_ip: offer.address,
        server_ip: SERVER,
        router: Some(offer.router),
        subnet_mask: Some(offer.mask),
        server_identifier: Some(SERVER),
        lease_duration: Some(offer.seconds),
        requested_ip: None,
        client_identifier: None,
        parameter_request_list: None,
        max_size: None,
        ..asked
    };
    let udp = UdpRepr {
        src_port: 67,
        dst_port: 68,
    };
    let ipv4 = Ipv4Repr {
        src_addr: offer.from,
        dst_addr: Ipv4Addr::BROADCAST,
        next_header: IpProtocol::Udp,
        payload_len: udp.header_len() + dhcp.buffer_len(),
        hop_limit: 64,
    };
    let ethernet = EthernetRepr {
        src_addr: smoltcp::wire::EthernetAddress([2, 0, 0, 0, 0, 9]),
        dst_addr: frame.src_addr(),
        ethertype: smoltcp::wire::EthernetProtocol::Ipv4,
    };
    let checksums = ChecksumCapabilities::default();
    let len = ethernet.buffer_len() + ipv4.buffer_len() + ipv4.payload_len;
    let mut bytes = vec![0; len];
    let mut out = EthernetFrame::new_unchecked(&mut bytes);
    ethernet.emit(&mut out);
    let mut out = Ipv4Packet::new_unchecked(out.payload_mut());
    ipv4.emit(&mut out, &checksums);
    udp.emit(
        &mut UdpPacket::new_unchecked(out.payload_mut()),
        &offer.from.into(),
        &Ipv4Addr::BROADCAST.into(),
        dhcp.buffer_len(),
        |payload| {
            dhcp.emit(&mut DhcpPacket::new_unchecked(payload)).unwrap();
        },
        &checksums,
    );
    Some(bytes)
}

/// A host that asks.
fn host() -> (Stack<FakeNic>, FakeNic) {
    let nic = FakeNic::new(1);
    (Stack::new(nic.clone(), Settings::Dhcp, 7, 0), nic)
}

/// Lets the host ask, and answers it, until it has nothing to say at this time.
fn ask(host: &mut Stack<FakeNic>, nic: &FakeNic, offer: Option<&Offer>, now: u64) {
    loop {
        host.poll(now);
        let sent = std::mem::take(&mut nic.rings.borrow_mut().sent);
        let answers = sent.iter().filter_map(|frame| answer(frame, offer?));
        let answers: Vec<_> = answers.collect();
        if answers.is_empty() {
            return;
        }
        nic.rings.borrow_mut().arrived.extend(answers);
    }
}

#[test]
fn an_address_is_lent_renewed_and_lost() {
    let (mut host, nic) = host();
    ask(&mut host, &nic, None, 0);
    let report = host.report();
    assert_eq!(
        (report.address, report.configured),
        (None, Configured::Asking)
    );
    // It asks again after a while.
    let mut now = host.deadline(0).unwrap();
    assert!(now > 0);
    ask(&mut host, &nic, Some(&GOOD), now);
    let report = host.report();
    assert_eq!(report.address, Some((OURS.into(), 24)));
    assert_eq!(report.gateway, Some(SERVER.into()));
    assert_eq!(report.configured, Configured::Dhcp);
    // Renewed before its end, as often as it takes.
    for _ in 0..5 {
        let next = host.deadline(now).unwrap();
        assert!(next > now && next < now + 60 * SECOND);
        now = next;
        ask(&mut host, &nic, Some(&GOOD), now);
        assert_eq!(host.report().address, Some((OURS.into(), 24)));
    }
    // The server is gone.
    let end = now + 61 * SECOND;
    while now < end {
        now = host.deadline(now).unwrap().clamp(now + 1000, end);
        ask(&mut host, &nic, None, now);
    }
    let report = host.report();
    assert_eq!((report.address, report.gateway), (None, None));
    assert_eq!(report.configured, Configured::Asking);
}

#[test]
fn who_can_be_no_host_lends_nothing() {
    for from in [[0, 0, 0, 0], [127, 0, 0, 1], [224, 0, 0, 1], [255; 4]] {
        let from = Ipv4Addr::from(from);
        let offer = Offer {
            from,
            seconds: 1,
            ..GOOD
        };
        let (mut host, nic) = host();
        let mut now = 0;
        // Past the renewal of what it would lend, which would go there.
        while now < 20 * SECOND {
            ask(&mut host, &nic, Some(&offer), now);
            assert_eq!(host.report().address, None, "{from}");
            now = host.deadline(now).unwrap().max(now + 1000);
        }
        assert!(host.counters().drops.source > 0, "{from}");
    }
}

#[test]
fn what_no_host_can_have_is_no_lease() {
    let bad = |address: [u8; 4], mask: [u8; 4]| Offer {
        address: address.into(),
        mask: mask.into(),
        ..GOOD
    };
    for offer in [
        bad([10, 0, 2, 255], [255, 255, 255, 0]),
        bad([10, 0, 2, 0], [255, 255, 255, 0]),
        bad([10, 0, 2, 15], [255, 255, 255, 255]),
        bad([10, 0, 2, 15], [0, 0, 0, 0]),
        bad([10, 0, 2, 15], [255, 0, 255, 0]),
        bad([127, 0, 0, 1], [255, 0, 0, 0]),
        bad([224, 0, 0, 1], [255, 255, 255, 0]),
        bad([255, 255, 255, 255], [255, 255, 255, 0]),
        bad([0, 0, 0, 0], [255, 255, 255, 0]),
    ] {
        let (mut host, nic) = host();
        ask(&mut host, &nic, Some(&offer), 0);
        let report = host.report();
        assert_eq!(
            (report.address, report.gateway),
            (None, None),
            "{}",
            offer.address
        );
        assert_eq!(report.configured, Configured::Asking, "{}", offer.address);
    }
    // An address with a gateway elsewhere is one without.
    let offer = Offer {
        router: [10, 9, 9, 9].into(),
        ..GOOD
    };
    let (mut host, nic) = host();
    ask(&mut host, &nic, Some(&offer), 0);
    let report = host.report();
    assert_eq!(
        (report.address, report.gateway),
        (Some((OURS.into(), 24)), None)
    );
}

/// Who lends it for ever does not keep the host from one who lends what it can have.
#[test]
fn what_no_host_can_have_is_not_kept() {
    let offer = Offer {
        address: [10, 0, 2, 255].into(),
        seconds: u32::MAX,
        ..GOOD
    };
    let (mut host, nic) = host();
    ask(&mut host, &nic, Some(&offer), 0);
    assert_eq!(host.report().address, None);
    // Not at once: it would be told the same.
    let next = host.deadline(0).unwrap();
    assert_eq!(next, 10 * SECOND);
    ask(&mut host, &nic, Some(&GOOD), next);
    assert_eq!(host.report().address, Some((OURS.into(), 24)));
    assert_eq!(host.report().configured, Configured::Dhcp);
    assert!(host.deadline(next).unwrap() > next + 20 * SECOND);
}
