//! What a received frame is, and whether it goes further.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use ipc::proto::net::Drops;
use smoltcp::wire::{
    ArpPacket, EthernetAddress, EthernetFrame, EthernetProtocol, Icmpv4Message, Icmpv4Packet,
    IpProtocol, Ipv4Cidr, Ipv4Packet, UdpPacket,
};

/// Port of a DHCP client.
pub const DHCP_CLIENT: u16 = 68;

/// What is for this host.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// The device's own address.
    pub mac: EthernetAddress,
    /// The host's address, if it has one.
    pub own: Option<Ipv4Cidr>,
    /// UDP ports that somebody has.
    pub ports: Vec<u16>,
    /// What this host's echo requests are known by.
    pub identifier: u16,
}

impl Addresses {
    pub const fn new(mac: EthernetAddress) -> Self {
        Self {
            mac,
            own: None,
            ports: Vec::new(),
            identifier: 0,
        }
    }

    /// Whether an address may be that of one host on the link, or behind it.
    fn may_be_a_host(&self, address: Ipv4Addr) -> bool {
        let is_all = self.own.is_some_and(|own| own.broadcast() == Some(address));
        // 0.0.0.0/8, 127.0.0.0/8, 224.0.0.0/4 and 240.0.0.0/4, which the broadcast address is in (RFC 1122, 3.2.1.3).
        let [first, ..] = address.octets();
        !is_all && first != 0 && !address.is_loopback() && first < 224
    }

    fn is_own(&self, address: Ipv4Addr) -> bool {
        // A host that has no address yet takes what DHCP sends to the one that it will have.
        let Some(own) = self.own else { return true };
        own.address() == address || address.is_broadcast() || own.broadcast() == Some(address)
    }
}

/// What a frame says that the IP stack does not tell anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Somebody said where an address is.
    Arp,
    /// A UDP datagram for this port.
    Datagram(u16),
    /// A UDP datagram for a port of this host's that nobody has: whoever sent it is told, by the stack behind.
    NoPort,
    /// A datagram that was sent from this UDP port did not reach its own.
    PortUnreachable(u16),
    /// An echo request with this identifier and sequence number did not reach its host.
    EchoUnreachable(u16, u16),
}

/// The count of one reason.
pub type Reason = fn(&mut Drops) -> &mut u64;

/// What becomes of a frame.
#[derive(Clone, Copy, Debug)]
pub enum Verdict {
    /// It goes further.
    Pass(Option<Notice>),
    /// It does not, and is counted.
    Drop(Reason),
}

/// Looks at a frame.
pub fn judge(frame: &[u8], addresses: &Addresses) -> Verdict {
    match ethernet(frame, addresses) {
        Ok(notice) => Verdict::Pass(notice),
        Err(reason) => Verdict::Drop(reason),
    }
}

fn malformed(drops: &mut Drops) -> &mut u64 {
    &mut drops.malformed
}
fn wrong_checksum(drops: &mut Drops) -> &mut u64 {
    &mut drops.checksum
}
fn other_protocol(drops: &mut Drops) -> &mut u64 {
    &mut drops.protocol
}
fn elsewhere(drops: &mut Drops) -> &mut u64 {
    &mut drops.elsewhere
}
fn fragment(drops: &mut Drops) -> &mut u64 {
    &mut drops.fragment
}
fn no_port(drops: &mut Drops) -> &mut u64 {
    &mut drops.no_port
}
fn unasked(drops: &mut Drops) -> &mut u64 {
    &mut drops.unasked
}
fn impossible_source(drops: &mut Drops) -> &mut u64 {
    &mut drops.source
}

fn ethernet(frame: &[u8], addresses: &Addresses) -> Result<Option<Notice>, Reason> {
    let frame = EthernetFrame::new_checked(frame).map_err(|_| malformed as Reason)?;
    let to = frame.dst_addr();
    if to != addresses.mac && !to.is_multicast() {
        return Err(elsewhere);
    }
    match frame.ethertype() {
        EthernetProtocol::Arp => {
            ArpPacket::new_checked(frame.payload()).map_err(|_| malformed as Reason)?;
            Ok(Some(Notice::Arp))
        }
        EthernetProtocol::Ipv4 => ipv4(frame.payload(), addresses),
        _ => Err(other_protocol),
    }
}

fn ipv4(bytes: &[u8], addresses: &Addresses) -> Result<Option<Notice>, Reason> {
    let packet = Ipv4Packet::new_checked(bytes).map_err(|_| malformed as Reason)?;
    if packet.version() != 4 {
        return Err(malformed);
    }
    if !packet.verify_checksum() {
        return Err(wrong_checksum);
    }
    if packet.more_frags() || packet.frag_offset() != 0 {
        return Err(fragment);
    }
    let (from, to) = (packet.src_addr(), packet.dst_addr());
    // Nobody can be answered there, and smoltcp would try: it takes a DHCP server's word for where that is.
    if !addresses.may_be_a_host(from) {
        return Err(impossible_source);
    }
    if !addresses.is_own(to) {
        return Err(elsewhere);
    }
    match packet.next_header() {
        IpProtocol::Icmp => icmp(packet.payload(), addresses),
        IpProtocol::Udp => {
            let datagram =
                UdpPacket::new_checked(packet.payload()).map_err(|_| malformed as Reason)?;
            if !datagram.verify_checksum(&from.into(), &to.into()) {
                return Err(wrong_checksum);
            }
            let port = datagram.dst_port();
            let is_known = addresses.ports.contains(&port);
            let is_for_all = addresses.own.is_none_or(|own| own.address() != to);
            match (is_known, is_for_all) {
                (true, _) => Ok(Some(Notice::Datagram(port))),
                (false, true) => Err(no_port),
                (false, false) => Ok(Some(Notice::NoPort)),
            }
        }
        _ => Err(other_protocol),
    }
}

fn icmp(bytes: &[u8], addresses: &Addresses) -> Result<Option<Notice>, Reason> {
    let packet = Icmpv4Packet::new_checked(bytes).map_err(|_| malformed as Reason)?;
    if !packet.verify_checksum() {
        return Err(wrong_checksum);
    }
    match packet.msg_type() {
        Icmpv4Message::DstUnreachable => Ok(bytes.get(8..).and_then(returned)),
        Icmpv4Message::EchoRequest => Ok(None),
        Icmpv4Message::EchoReply if packet.echo_ident() == addresses.identifier => Ok(None),
        Icmpv4Message::EchoReply => Err(unasked),
        _ => Err(other_protocol),
    }
}

/// Whose datagram came back with a message that it did not arrive; `None` if too little of it did to tell.
fn returned(bytes: &[u8]) -> Option<Notice> {
    // The beginning of a datagram: its length says more than is there.
    let header = bytes.get(..20)?;
    let length = usize::from(header[0] & 0xf) * 4;
    let rest = bytes.get(length..)?;
    let word = |at: usize| Some(u16::from_be_bytes([*rest.get(at)?, *rest.get(at + 1)?]));
    match IpProtocol::from(header[9]) {
        IpProtocol::Udp => Some(Notice::PortUnreachable(word(0)?)),
        IpProtocol::Icmp if rest.first() == Some(&Icmpv4Message::EchoRequest.into()) => {
            Some(Notice::EchoUnreachable(word(4)?, word(6)?))
        }
        _ => None,
    }
}
