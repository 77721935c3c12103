//! A DHCP server at the test's end of the cable, which lends what it is told to.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use smoltcp::wire::{
    ArpOperation, DhcpMessageType, DhcpOption, DhcpPacket, DhcpRepr, EthernetAddress,
    EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet, UdpPacket,
};

use super::cable::Cable;
use super::frame::{self, Host};
use super::{GATEWAY, MACHINE};
use crate::system::calm::until;
use crate::system::guest::PATIENCE;
use crate::system::session::Session;
use crate::test::Verdict;

/// Ports of a DHCP server and its client.
const PORTS: (u16, u16) = (67, 68);
/// The option by which a server says when its client is to renew the lease: T1 of RFC 2132, 9.11, in seconds.
const RENEWAL: u8 = 58;
pub const MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);

/// What a server lends, and how.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    pub address: Ipv4Addr,
    pub mask: Ipv4Addr,
    pub router: Ipv4Addr,
    pub seconds: u32,
    /// The source of its messages.
    pub from: Ipv4Addr,
    pub renewal: Option<[u8; 4]>,
}

pub const HONEST: Lease = Lease {
    address: MACHINE,
    mask: MASK,
    router: GATEWAY.ip,
    seconds: 3600,
    from: GATEWAY.ip,
    renewal: None,
};

/// A message of the machine's.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub kind: DhcpMessageType,
    pub transaction: u32,
    pub mac: EthernetAddress,
    /// The address that it has and asks to keep.
    pub address: Ipv4Addr,
}

/// All the servers there are.
pub struct Server {
    cable: Cable,
    /// Frames that were sent.
    frames: u64,
}

impl Server {
    pub const fn new(cable: Cable) -> Self {
        Self { cable, frames: 0 }
    }

    /// The cable, once the machine has an address.
    pub fn into_cable(self) -> Cable {
        self.cable
    }

    fn send(&mut self, frame: &[u8]) -> Verdict {
        self.frames += 1;
        self.cable.send(frame)
    }

    /// The next message of the machine's that comes within this time.
    pub fn within(&mut self, wait: Duration) -> Result<Option<Asked>> {
        while let Some(bytes) = self.cable.receive(wait)? {
            let frame = EthernetFrame::new_checked(&bytes[..])?;
            match frame.ethertype() {
                EthernetProtocol::Arp => {
                    if let Some((ip, who)) = frame::asked(&frame)
                        && ip == GATEWAY.ip
                    {
                        self.send(&frame::arp(ArpOperation::Reply, GATEWAY, who))?;
                    }
                }
                EthernetProtocol::Ipv4 => {
                    if let Some(asked) = asked(frame.payload())? {
                        return Ok(Some(asked));
                    }
                }
                other => bail!("a frame of {other}"),
            }
        }
        Ok(None)
    }

    /// Waits for such a message; the machine is not answered what comes before it.
    pub fn next(&mut self, is_it: impl Fn(&Asked) -> bool) -> Result<Asked> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let asked = self.within(PATIENCE)?.context("the machine is silent")?;
            if is_it(&asked) {
                return Ok(asked);
            }
            ensure!(Instant::now() < deadline, "{asked:?} again and again");
        }
    }

    pub fn answer(&mut self, asked: &Asked, kind: DhcpMessageType, lease: &Lease) -> Verdict {
        let payload = payload(asked, kind, lease)?;
        self.send(&frame(asked, lease, &payload))
    }

    /// Every beginning of a message, and each of its bytes as none should be.
    pub fn broken(&mut self, asked: &Asked, kind: DhcpMessageType) -> Verdict {
        let whole = payload(asked, kind, &HONEST)?;
        for at in 0..whole.len() {
            self.send(&frame(asked, &HONEST, &whole[..at]))?;
            let mut broken = whole.clone();
            broken[at] = 0xff;
            self.send(&frame(asked, &HONEST, &broken))?;
        }
        Ok(())
    }

    /// Lends to the machine once it looks for a server; gives its request.
    pub fn lend(&mut self, lease: &Lease) -> Result<Asked> {
        let mut offered = None;
        loop {
            let asked = self.next(|_| true)?;
            if asked.kind == DhcpMessageType::Discover {
                offered = Some(asked.transaction);
                self.answer(&asked, DhcpMessageType::Offer, lease)?;
            } else if Some(asked.transaction) == offered {
                self.answer(&asked, DhcpMessageType::Ack, lease)?;
                return Ok(asked);
            }
        }
    }

    /// Waits until the machine has taken all that was sent; `net` says this then. It asks for the address before the counts, so it is run
    /// once more.
    pub fn shows(&self, session: &mut Session, parts: &[&str]) -> Verdict {
        let taken = format!("received    {} packets", self.frames);
        until(session, |session| session.expect("net", &[&taken]))?;
        session.expect("net", parts)?;
        Ok(())
    }
}

/// The message in a packet, if it is for a DHCP server.
fn asked(packet: &[u8]) -> Result<Option<Asked>> {
    let packet = Ipv4Packet::new_checked(packet)?;
    if packet.next_header() != IpProtocol::Udp {
        return Ok(None);
    }
    let datagram = UdpPacket::new_checked(packet.payload())?;
    if datagram.dst_port() != PORTS.0 {
        return Ok(None);
    }
    let message = DhcpPacket::new_checked(datagram.payload())?;
    let message = DhcpRepr::parse(&message)?;
    Ok(Some(Asked {
        kind: message.message_type,
        transaction: message.transaction_id,
        mac: message.client_hardware_address,
        address: message.client_ip,
    }))
}

/// A server's answer.
fn payload(asked: &Asked, kind: DhcpMessageType, lease: &Lease) -> Result<Vec<u8>> {
    let renewal = lease.renewal.as_ref().map(|data| DhcpOption {
        kind: RENEWAL,
        data,
    });
    let message = DhcpRepr {
        message_type: kind,
        transaction_id: asked.transaction,
        secs: 0,
        client_hardware_address: asked.mac,
        client_ip: Ipv4Addr::UNSPECIFIED,
        your_ip: lease.address,
        server_ip: GATEWAY.ip,
        router: Some(lease.router),
        subnet_mask: Some(lease.mask),
        relay_agent_ip: Ipv4Addr::UNSPECIFIED,
        broadcast: false,
        requested_ip: None,
        client_identifier: None,
        server_identifier: Some(GATEWAY.ip),
        parameter_request_list: None,
        dns_servers: None,
        max_size: None,
        lease_duration: Some(lease.seconds),
        renew_duration: None,
        rebind_duration: None,
        additional_options: renewal.as_slice(),
    };
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut DhcpPacket::new_unchecked(&mut bytes[..]))?;
    Ok(bytes)
}

/// A frame with it, to the machine, which has no address yet.
fn frame(asked: &Asked, lease: &Lease, payload: &[u8]) -> Vec<u8> {
    let from = Host {
        ip: lease.from,
        ..GATEWAY
    };
    let to = Host {
        mac: asked.mac,
        ip: Ipv4Addr::BROADCAST,
    };
    frame::datagram(from, to, PORTS, payload)
}
