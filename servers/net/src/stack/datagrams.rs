//! UDP: ports, what has come for them, and what is sent from them.

use alloc::vec;
use core::net::SocketAddrV4;

use ipc::proto::net::{DATAGRAM_MAX, NetError, SocketStatistics};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket, UdpMetadata};
use smoltcp::wire::{IpAddress, IpEndpoint};

use super::frame::DHCP_CLIENT;
use super::queue::Queue;
use super::waiting::{Attempt, Parcel};
use super::{Stack, instant};
use crate::device::Nic;

/// Sockets that have a port at once.
pub const SOCKETS_MAX: usize = 16;
/// The first port that is given to who does not mind which.
const PORT_MIN: u16 = 49152;

/// A socket with a port. It names another one after it was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketId(usize);

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// It was taken.
    Taken,
    /// It was not: the device has no room, and says when it has.
    NoRoom,
}

/// A socket's state.
#[derive(Debug)]
pub(super) struct Endpoint {
    handle: SocketHandle,
    port: u16,
    queue: Queue,
    statistics: SocketStatistics,
}

/// A socket of smoltcp that holds a datagram each way.
fn socket(port: u16) -> Socket<'static> {
    let buffer = || {
        let bytes = vec![0; DATAGRAM_MAX.into()];
        PacketBuffer::new(vec![PacketMetadata::EMPTY], bytes)
    };
    let mut socket = Socket::new(buffer(), buffer());
    // A socket that was just made has no port, and 0 is not given out.
    let _ = socket.bind(port);
    socket
}

impl<D: Nic> Stack<D> {
    /// Gives out a port; any that is free for 0.
    ///
    /// # Errors
    /// `PortTaken`, or `Busy` if there are as many sockets as can be.
    pub fn bind(&mut self, port: u16) -> Result<SocketId, NetError> {
        if self.endpoints.iter().flatten().count() == SOCKETS_MAX {
            return Err(NetError::Busy);
        }
        let port = match port {
            0 => self.free_port(),
            // Whether or not it is used.
            DHCP_CLIENT => return Err(NetError::PortTaken),
            port if self.has_port(port) => return Err(NetError::PortTaken),
            port => port,
        };
        let endpoint = Endpoint {
            handle: self.sockets.add(socket(port)),
            port,
            queue: Queue::new(),
            statistics: SocketStatistics::default(),
        };
        self.gate.addresses.ports.push(port);
        let free = self.endpoints.iter().position(Option::is_none);
        let index = free.unwrap_or(self.endpoints.len());
        match self.endpoints.get_mut(index) {
            Some(place) => *place = Some(endpoint),
            None => self.endpoints.push(Some(endpoint)),
        }
        Ok(SocketId(index))
    }

    fn has_port(&self, port: u16) -> bool {
        self.gate.addresses.ports.contains(&port)
    }

    /// A port that nobody has: there are more of them than sockets.
    fn free_port(&mut self) -> u16 {
        loop {
            let port = self.next_port.max(PORT_MIN);
            self.next_port = port.wrapping_add(1);
            if !self.has_port(port) {
                return port;
            }
        }
    }

    /// Ends a socket, and what it has not sent or received yet.
    pub fn close(&mut self, id: SocketId) {
        let Some(endpoint) = self.endpoints.get_mut(id.0).and_then(Option::take) else {
            return;
        };
        self.sockets.remove(endpoint.handle);
        let ports = &mut self.gate.addresses.ports;
        ports.retain(|&port| port != endpoint.port);
        self.waiting.forget(id);
    }

    fn endpoint(&mut self, id: SocketId) -> Option<&mut Endpoint> {
        self.endpoints.get_mut(id.0)?.as_mut()
    }

    /// The socket's port; 0 if it was closed.
    pub fn port(&mut self, id: SocketId) -> u16 {
        self.endpoint(id).map_or(0, |endpoint| endpoint.port)
    }

    /// What the socket did.
    pub fn statistics(&mut self, id: SocketId) -> SocketStatistics {
        let endpoint = self.endpoint(id);
        endpoint.map_or_else(SocketStatistics::default, |endpoint| endpoint.statistics)
    }

    /// Sends a datagram of so many bytes, which `fill` writes.
    ///
    /// # Errors
    /// `TooLarge`; `BadArgument` for what is not the address of one host and port; `Unreachable`; `DeviceFailed`, `DeviceStalled`.
    pub fn send(
        &mut self,
        id: SocketId,
        to: SocketAddrV4,
        len: usize,
        fill: &dyn Fn(&mut [u8]),
        now: u64,
    ) -> Result<Sending, NetError> {
        let sent = self.take_datagram(id, to, len, fill, now);
        if let Some(Endpoint { statistics, .. }) = self.endpoint(id) {
            let (count, bytes) = match sent {
                Ok(Sending::Taken) => (&mut statistics.sent, len as u64),
                Ok(Sending::NoRoom) => return sent,
                Err(_) => (&mut statistics.failed, 0),
            };
            *count = count.saturating_add(1);
            statistics.sent_bytes = statistics.sent_bytes.saturating_add(bytes);
        }
        sent
    }

    fn take_datagram(
        &mut self,
        id: SocketId,
        to: SocketAddrV4,
        len: usize,
        fill: &dyn Fn(&mut [u8]),
        now: u64,
    ) -> Result<Sending, NetError> {
        if len > usize::from(DATAGRAM_MAX) {
            return Err(NetError::TooLarge);
        }
        if to.port() == 0 {
            return Err(NetError::BadArgument);
        }
        if self.has_failed() {
            return Err(NetError::DeviceFailed);
        }
        let hop = self.next_hop(*to.ip())?;
        if self.waiting.is_silent(hop, now) {
            return Err(NetError::Unreachable);
        }
        let attempt = match self.waiting.is_awaited(hop) {
            true => Attempt::NoNeighbour,
            false => self.send_datagram(id, to, len, fill, now),
        };
        match attempt {
            Attempt::NoRoom => match self.outage(now) {
                Some(error) => Err(error),
                None => Ok(Sending::NoRoom),
            },
            Attempt::Sent => Ok(Sending::Taken),
            Attempt::NoNeighbour => {
                let mut bytes = vec![0; len].into_boxed_slice();
                fill(&mut bytes);
                if !self.waiting.is_awaited(hop) {
                    self.ask(hop, now);
                }
                let parcel = Parcel::Datagram {
                    socket: id,
                    peer: to,
                    bytes,
                };
                self.wait(parcel, hop, now);
                Ok(Sending::Taken)
            }
        }
    }

    /// Hands one datagram to the device, or finds why not.
    pub(super) fn send_datagram(
        &mut self,
        id: SocketId,
        to: SocketAddrV4,
        len: usize,
        fill: &dyn Fn(&mut [u8]),
        now: u64,
    ) -> Attempt {
        let Some(&mut Endpoint { handle, port, .. }) = self.endpoint(id) else {
            // Its socket was closed: there is nothing left to be done for it.
            return Attempt::Sent;
        };
        let to = UdpMetadata::from(IpEndpoint::new(IpAddress::Ipv4(*to.ip()), to.port()));
        let socket = self.sockets.get_mut::<Socket>(handle);
        match socket.send(len, to) {
            Ok(room) => fill(room),
            // It holds no other, and whoever calls has looked at the length and the address.
            Err(_) => return Attempt::NoRoom,
        }
        self.gate.is_full = false;
        let _ = self
            .interface
            .poll_egress(instant(now), &mut self.gate, &mut self.sockets);
        let socket = self.sockets.get_mut::<Socket>(handle);
        if socket.can_send() {
            return Attempt::Sent;
        }
        if self.gate.is_full {
            socket.close();
            let _ = socket.bind(port);
            return Attempt::NoRoom;
        }
        // smoltcp sends nothing from this socket until it knows that host: a new one has no such past.
        self.sockets.remove(handle);
        let handle = self.sockets.add(self::socket(port));
        if let Some(endpoint) = self.endpoint(id) {
            endpoint.handle = handle;
        }
        Attempt::NoNeighbour
    }

    /// Puts what smoltcp has for a port into its queue.
    pub(super) fn queue_datagram(&mut self, port: u16) {
        let endpoints = self.endpoints.iter_mut().flatten();
        let Some(endpoint) = endpoints.into_iter().find(|found| found.port == port) else {
            return;
        };
        let socket = self.sockets.get_mut::<Socket>(endpoint.handle);
        while let Ok((bytes, from)) = socket.recv() {
            let IpAddress::Ipv4(address) = from.endpoint.addr;
            let from = SocketAddrV4::new(address, from.endpoint.port);
            if !endpoint.queue.push(from, bytes) {
                let own = &mut endpoint.statistics.queue_full;
                let all = &mut self.gate.drops.queue_full;
                (*own, *all) = (own.saturating_add(1), all.saturating_add(1));
            }
        }
    }

    /// The datagram that is `index` behind the first one that waits for the socket's owner.
    pub fn datagram(&self, id: SocketId, index: usize) -> Option<(SocketAddrV4, &[u8])> {
        self.endpoints.get(id.0)?.as_ref()?.queue.get(index)
    }

    /// Takes the first `count` of them out: their owner has them.
    pub fn discard(&mut self, id: SocketId, count: usize) {
        let Some(endpoint) = self.endpoint(id) else {
            return;
        };
        for index in 0..count {
            let Some((_, bytes)) = endpoint.queue.get(index) else {
                break;
            };
            let statistics = &mut endpoint.statistics;
            statistics.received = statistics.received.saturating_add(1);
            let sum = statistics.received_bytes.saturating_add(bytes.len() as u64);
            statistics.received_bytes = sum;
        }
        endpoint.queue.discard(count);
    }

    pub(super) fn count_refused(&mut self, port: u16) {
        let mut endpoints = self.endpoints.iter_mut().flatten();
        if let Some(endpoint) = endpoints.find(|endpoint| endpoint.port == port) {
            let refused = &mut endpoint.statistics.refused;
            *refused = refused.saturating_add(1);
        }
    }

    /// Counts a datagram that was taken and not sent.
    pub(super) fn count_unsent(
        &mut self,
        id: SocketId,
        reason: fn(&mut SocketStatistics) -> &mut u64,
    ) {
        if let Some(endpoint) = self.endpoint(id) {
            let count = reason(&mut endpoint.statistics);
            *count = count.saturating_add(1);
        }
    }
}
