//! The test's end of the cable: the gateway, and whoever else it says it is.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use smoltcp::wire::{
    ArpOperation, EthernetAddress, EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet,
    UdpPacket,
};

use super::cable::Cable;
use super::frame::{self, Host};
use super::{GATEWAY, MACHINE};
use crate::system::guest::PATIENCE;
use crate::test::Verdict;

/// How long one look for a frame takes.
const STEP: Duration = Duration::from_millis(20);

/// The test's end of the cable.
pub struct End {
    cable: Cable,
    pub machine: Host,
    /// Bytes of IPv4 that came back, for each address and UDP port; what is not UDP has port 0.
    pub back: BTreeMap<(Ipv4Addr, u16), usize>,
    /// Echo requests that were sent, and that were answered.
    echoes: u16,
    echoed: u16,
    /// The gateway's UDP port of which is kept what came.
    listens: u16,
    heard: VecDeque<Vec<u8>>,
}

impl End {
    /// Asks where the machine is.
    pub fn new(cable: Cable) -> Result<Self> {
        let machine = Host {
            mac: EthernetAddress::BROADCAST,
            ip: MACHINE,
        };
        let mut end = Self {
            cable,
            machine,
            back: BTreeMap::new(),
            echoes: 0,
            echoed: 0,
            listens: 0,
            heard: VecDeque::new(),
        };
        let request = frame::arp(ArpOperation::Request, GATEWAY, machine);
        end.cable.send(&request)?;
        end.until(|end| end.machine.mac.is_unicast())?;
        Ok(end)
    }

    pub fn send(&mut self, frame: &[u8]) -> Verdict {
        self.cable.send(frame)
    }

    /// Sends an echo request, which the machine answers once it has taken all frames before it.
    pub fn mark(&mut self) -> Verdict {
        self.echoes = self.echoes.wrapping_add(1);
        let echo = frame::echo(GATEWAY, self.machine, self.echoes);
        self.cable.send(&echo)
    }

    /// Marks that the machine has not come to.
    pub const fn ahead(&self) -> u16 {
        self.echoes.wrapping_sub(self.echoed)
    }

    /// Waits until the machine has taken all frames that were sent.
    pub fn catch_up(&mut self) -> Verdict {
        self.mark()?;
        self.until(|end| end.ahead() == 0)
    }

    /// Keeps from now on what comes for this UDP port of the gateway's.
    pub fn listen_at(&mut self, port: u16) {
        self.listens = port;
        self.heard.clear();
    }

    /// The next datagram that came for it.
    pub fn heard(&mut self) -> Option<Vec<u8>> {
        self.heard.pop_front()
    }

    pub fn until(&mut self, is_so: impl Fn(&Self) -> bool) -> Verdict {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            ensure!(Instant::now() < deadline, "the machine is silent");
            self.turn(STEP)?;
        }
        Ok(())
    }

    /// Takes what comes, until nothing has for this long.
    pub fn listen(&mut self, time: Duration) -> Verdict {
        while self.turn(time)? {}
        Ok(())
    }

    /// Takes the next frame that comes within this time; whether there was one.
    pub fn turn(&mut self, wait: Duration) -> Result<bool> {
        let Some(bytes) = self.cable.receive(wait)? else {
            return Ok(false);
        };
        let frame = EthernetFrame::new_checked(&bytes[..])?;
        match frame.ethertype() {
            EthernetProtocol::Arp => {
                self.machine.mac = frame.src_addr();
                // Nobody but the machine itself has its address.
                if let Some((ip, who)) = frame::asked(&frame)
                    && ip != MACHINE
                {
                    let answer = frame::arp(ArpOperation::Reply, Host { ip, ..GATEWAY }, who);
                    self.cable.send(&answer)?;
                }
            }
            EthernetProtocol::Ipv4 => self.packet(frame.payload())?,
            other => bail!("a frame of {other}"),
        }
        Ok(true)
    }

    fn packet(&mut self, bytes: &[u8]) -> Verdict {
        let packet = Ipv4Packet::new_checked(bytes)?;
        let to = packet.dst_addr();
        let payload = packet.payload();
        let port = match packet.next_header() {
            IpProtocol::Udp => {
                let datagram = UdpPacket::new_checked(payload)?;
                let port = datagram.dst_port();
                if to == GATEWAY.ip && port == self.listens {
                    self.heard.push_back(datagram.payload().to_vec());
                }
                port
            }
            // Type, code, checksum, identifier, sequence number (RFC 792).
            IpProtocol::Icmp if to == GATEWAY.ip && payload.first() == Some(&0) => {
                let number = payload.get(6..8).context("a short echo")?;
                self.echoed = u16::from_be_bytes([number[0], number[1]]);
                return Ok(());
            }
            _ => 0,
        };
        *self.back.entry((to, port)).or_default() += usize::from(packet.total_len());
        Ok(())
    }
}
