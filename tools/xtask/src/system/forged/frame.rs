//! Frames as hosts send them, made with smoltcp's words for them; what is wrong with one is made wrong afterwards.

use std::net::Ipv4Addr;

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr, Icmpv4Packet, Icmpv4Repr, IpProtocol, Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr,
};

/// Bytes of an Ethernet header, and of an IPv4 header behind it.
pub const ETHERNET: usize = 14;
pub const IPV4: usize = 20;

/// Who sends, or is sent to.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    pub mac: EthernetAddress,
    pub ip: Ipv4Addr,
}

fn ethernet(from: Host, to: EthernetAddress, kind: EthernetProtocol, len: usize) -> Vec<u8> {
    let header = EthernetRepr {
        src_addr: from.mac,
        dst_addr: to,
        ethertype: kind,
    };
    let mut bytes = vec![0; ETHERNET + len];
    header.emit(&mut EthernetFrame::new_unchecked(&mut bytes));
    bytes
}

fn ipv4(from: Host, to: Host, protocol: IpProtocol, len: usize) -> Vec<u8> {
    let header = Ipv4Repr {
        src_addr: from.ip,
        dst_addr: to.ip,
        next_header: protocol,
        payload_len: len,
        hop_limit: 64,
    };
    let mut bytes = ethernet(from, to.mac, EthernetProtocol::Ipv4, IPV4 + len);
    header.emit(
        &mut Ipv4Packet::new_unchecked(&mut bytes[ETHERNET..]),
        &ChecksumCapabilities::default(),
    );
    bytes
}

/// A UDP datagram; `ports` from and to.
pub fn datagram(from: Host, to: Host, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let header = UdpRepr {
        src_port: ports.0,
        dst_port: ports.1,
    };
    let len = header.header_len() + payload.len();
    let mut bytes = ipv4(from, to, IpProtocol::Udp, len);
    header.emit(
        &mut UdpPacket::new_unchecked(&mut bytes[ETHERNET + IPV4..]),
        &from.ip.into(),
        &to.ip.into(),
        payload.len(),
        |buffer| buffer.copy_from_slice(payload),
        &ChecksumCapabilities::default(),
    );
    bytes
}

/// An echo request without bytes.
pub fn echo(from: Host, to: Host, number: u16) -> Vec<u8> {
    let request = Icmpv4Repr::EchoRequest {
        ident: 1,
        seq_no: number,
        data: &[],
    };
    let mut bytes = ipv4(from, to, IpProtocol::Icmp, request.buffer_len());
    request.emit(
        &mut Icmpv4Packet::new_unchecked(&mut bytes[ETHERNET + IPV4..]),
        &ChecksumCapabilities::default(),
    );
    bytes
}

/// The checksum of a frame's IPv4 header, made right again.
pub fn mend(frame: &mut [u8]) {
    Ipv4Packet::new_unchecked(&mut frame[ETHERNET..]).fill_checksum();
}

/// Who is asked for, and by whom, if the frame asks where an address is.
pub fn asked(frame: &EthernetFrame<&[u8]>) -> Option<(Ipv4Addr, Host)> {
    match ArpRepr::parse(&ArpPacket::new_checked(frame.payload()).ok()?).ok()? {
        ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Request,
            source_hardware_addr: mac,
            source_protocol_addr: ip,
            target_protocol_addr,
            ..
        } => Some((target_protocol_addr, Host { mac, ip })),
        _ => None,
    }
}

/// An ARP message: a request for where `to` is, or the answer to one.
pub fn arp(operation: ArpOperation, from: Host, to: Host) -> Vec<u8> {
    let message = ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: from.mac,
        source_protocol_addr: from.ip,
        target_hardware_addr: to.mac,
        target_protocol_addr: to.ip,
    };
    let mut bytes = ethernet(from, to.mac, EthernetProtocol::Arp, message.buffer_len());
    message.emit(&mut ArpPacket::new_unchecked(&mut bytes[ETHERNET..]));
    bytes
}
