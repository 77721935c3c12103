//! ICMP echo: requests that are asked of other hosts. Those of others are answered by smoltcp.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use ipc::proto::net::{DATAGRAM_MAX, NetError};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp::{Endpoint, PacketBuffer, PacketMetadata, Socket};
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, IpAddress};

use super::Stack;
use super::waiting::{Attempt, Parcel};
use crate::device::Nic;

/// Requests under way at once.
pub const ECHOES_MAX: usize = 16;
/// Bytes of an ICMP echo's header.
const HEADER: usize = 8;

/// A request: its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoId(u16);

#[derive(Debug)]
struct Echo {
    id: EchoId,
    host: Ipv4Addr,
    bytes: usize,
    /// When the device got it.
    sent: Option<u64>,
    deadline: u64,
}

/// All requests under way.
#[derive(Debug)]
pub(super) struct Echoes {
    handle: SocketHandle,
    pub identifier: u16,
    next: u16,
    pending: Vec<Echo>,
    ended: VecDeque<(EchoId, Result<u64, NetError>)>,
}

/// A socket of smoltcp that holds a message each way.
fn socket(identifier: u16) -> Socket<'static> {
    let buffer = || {
        let bytes = vec![0; HEADER + usize::from(DATAGRAM_MAX)];
        PacketBuffer::new(vec![PacketMetadata::EMPTY], bytes)
    };
    let mut socket = Socket::new(buffer(), buffer());
    // A socket that was just made is bound to nothing, and to any number it can be.
    let _ = socket.bind(Endpoint::Ident(identifier));
    socket
}

impl Echoes {
    pub fn new(sockets: &mut SocketSet<'static>, seed: u64) -> Self {
        let identifier = (seed >> 16) as u16;
        Self {
            handle: sockets.add(socket(identifier)),
            identifier,
            next: 0,
            pending: Vec::new(),
            ended: VecDeque::new(),
        }
    }

    /// A number that no other one has.
    fn free_id(&mut self) -> EchoId {
        loop {
            let id = EchoId(self.next);
            self.next = id.0.wrapping_add(1);
            let of_ended = self.ended.iter().map(|(ended, _)| *ended);
            let mut others = self.pending.iter().map(|echo| echo.id).chain(of_ended);
            if others.all(|other| other != id) {
                return id;
            }
        }
    }

    /// Ends all of them.
    pub fn end_all(&mut self, error: NetError) {
        let ended = self.pending.drain(..).map(|echo| (echo.id, Err(error)));
        self.ended.extend(ended);
    }

    /// When the first of them is over, if no answer comes.
    pub fn deadline(&self) -> Option<u64> {
        self.pending.iter().map(|echo| echo.deadline).min()
    }

    /// Ends a request, if it is still under way.
    pub fn end(&mut self, id: EchoId, result: Result<u64, NetError>) {
        let place = self.pending.iter().position(|echo| echo.id == id);
        if let Some(place) = place {
            self.pending.swap_remove(place);
            self.ended.push_back((id, result));
        }
    }

    /// Somebody on the way says that there is none.
    pub fn unreachable(&mut self, identifier: u16, sequence: u16) {
        if identifier == self.identifier {
            self.end(EchoId(sequence), Err(NetError::Unreachable));
        }
    }
}

impl<D: Nic> Stack<D> {
    /// Asks a host for an echo of so many bytes, to be there by the deadline.
    ///
    /// # Errors
    /// `TooLarge`; `BadArgument` for what is not the address of one host; `Unreachable`; `Busy` if too many are under way;
    /// `DeviceFailed`, `DeviceStalled`.
    pub fn ping(
        &mut self,
        host: Ipv4Addr,
        bytes: usize,
        deadline: u64,
        now: u64,
    ) -> Result<EchoId, NetError> {
        if bytes > usize::from(DATAGRAM_MAX) {
            return Err(NetError::TooLarge);
        }
        if let Some(error) = self.outage(now) {
            return Err(error);
        }
        let hop = self.next_hop(host)?;
        if self.waiting.is_silent(hop, now) {
            return Err(NetError::Unreachable);
        }
        let underway = self.echoes.pending.len() + self.echoes.ended.len();
        if underway >= ECHOES_MAX {
            return Err(NetError::Busy);
        }
        let id = self.echoes.free_id();
        self.echoes.pending.push(Echo {
            id,
            host,
            bytes,
            sent: None,
            deadline,
        });
        if self.waiting.is_awaited(hop) || self.send_echo(id, now) != Attempt::Sent {
            if !self.waiting.is_awaited(hop) {
                self.ask(hop, now);
            }
            self.wait(Parcel::Echo(id), hop, now);
        }
        Ok(id)
    }

    /// A request that is over, and the nanoseconds that its answer took.
    pub fn ended_echo(&mut self) -> Option<(EchoId, Result<u64, NetError>)> {
        self.echoes.ended.pop_front()
    }

    /// Hands a request to the device, or finds why not.
    pub(super) fn send_echo(&mut self, id: EchoId, now: u64) -> Attempt {
        let mut pending = self.echoes.pending.iter();
        let Some(echo) = pending.find(|echo| echo.id == id) else {
            // It is over.
            return Attempt::Sent;
        };
        let data: Vec<u8> = (0..echo.bytes).map(|at| at as u8).collect();
        let request = Icmpv4Repr::EchoRequest {
            ident: self.echoes.identifier,
            seq_no: id.0,
            data: &data,
        };
        let (handle, host) = (self.echoes.handle, IpAddress::Ipv4(echo.host));
        let socket = self.sockets.get_mut::<Socket>(handle);
        match socket.send(request.buffer_len(), host) {
            Ok(room) => request.emit(
                &mut Icmpv4Packet::new_unchecked(room),
                &ChecksumCapabilities::default(),
            ),
            // It holds no other, and `ping` has looked at the length and the address.
            Err(_) => return Attempt::NoRoom,
        }
        self.gate.is_full = false;
        self.egress(now);
        if self.sockets.get_mut::<Socket>(handle).can_send() {
            let mut pending = self.echoes.pending.iter_mut();
            if let Some(echo) = pending.find(|echo| echo.id == id) {
                echo.sent = Some(now);
            }
            return Attempt::Sent;
        }
        let attempt = match self.gate.is_full {
            true => Attempt::NoRoom,
            false => Attempt::NoNeighbour,
        };
        // As with datagrams: smoltcp would hold back what comes after it.
        self.sockets.remove(handle);
        self.echoes.handle = self.sockets.add(self::socket(self.echoes.identifier));
        attempt
    }

    /// Takes the answers that smoltcp has.
    pub(super) fn take_echoes(&mut self, now: u64) {
        let socket = self.sockets.get_mut::<Socket>(self.echoes.handle);
        while let Ok((bytes, from)) = socket.recv() {
            let checksums = ChecksumCapabilities::ignored();
            let answer = Icmpv4Packet::new_checked(bytes)
                .and_then(|packet| Icmpv4Repr::parse(&packet, &checksums));
            let Ok(Icmpv4Repr::EchoReply { seq_no, .. }) = answer else {
                continue;
            };
            let mut pending = self.echoes.pending.iter();
            let asked = |echo: &&Echo| echo.id.0 == seq_no && from == IpAddress::Ipv4(echo.host);
            match pending
                .find(asked)
                .and_then(|echo| Some((echo.id, echo.sent?)))
            {
                Some((id, sent)) => self.echoes.end(id, Ok(now.saturating_sub(sent))),
                None => {
                    let unasked = &mut self.gate.drops.unasked;
                    *unasked = unasked.saturating_add(1);
                }
            }
        }
    }

    /// Ends what nobody answered in time.
    pub(super) fn end_echoes(&mut self, now: u64) {
        let is_over = |echo: &&Echo| echo.deadline <= now;
        while let Some(echo) = self.echoes.pending.iter().find(is_over) {
            let error = match echo.sent {
                Some(_) => NetError::Timeout,
                None => NetError::Unreachable,
            };
            self.echoes.end(echo.id, Err(error));
        }
    }
}
