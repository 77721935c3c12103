//! A program's socket: its slots, and the calls of it that wait.

use core::net::SocketAddrV4;

use ipc::proto::net::{Exchange, Exchanged, Header, NetError, Receive, Send, Slots, Swap};
use ipc::proto::{Parked, Responder};

use super::Memory;
use crate::device::Nic;
use crate::stack::{Sending, SocketId, Stack};

/// A call that waits until the device has room.
pub(super) enum Sender<P: Responder> {
    Send(Parked<P, Send>, Slots),
    Exchange(Parked<P, Swap>, Exchange),
}

/// A call that waits until there is a datagram.
pub(super) enum Receiver<P: Responder> {
    Receive(Parked<P, Receive>, Slots),
    /// With what it has sent before.
    Exchange(Parked<P, Swap>, Slots, u16),
}

/// A socket. Of each kind one call waits: the next one takes its place, because the kernel does not say that a caller has given up.
pub(super) struct Socket<S, P: Responder> {
    pub badge: u64,
    /// Badge of the program that made it.
    pub owner: u64,
    memory: S,
    slots: u16,
    /// Once it has a port.
    pub id: Option<SocketId>,
    pub sender: Option<Sender<P>>,
    pub receiver: Option<Receiver<P>>,
}

impl<S: Memory, P: Responder> Socket<S, P> {
    pub const fn new(badge: u64, owner: u64, memory: S, slots: u16) -> Self {
        Self {
            badge,
            owner,
            memory,
            slots,
            id: None,
            sender: None,
            receiver: None,
        }
    }

    /// Its port, for a call that needs some of its slots.
    ///
    /// # Errors
    /// `BadArgument` for slots that it does not have, `NotBound`.
    pub fn with(&self, slots: &[Slots]) -> Result<SocketId, NetError> {
        match slots.iter().all(|slots| slots.fits(self.slots)) {
            true => self.id.ok_or(NetError::NotBound),
            false => Err(NetError::BadArgument),
        }
    }

    /// Sends what is in the slots; how many the device took before there was no room or one could not be sent.
    ///
    /// # Errors
    /// Why the first cannot be sent.
    pub fn send<D: Nic>(
        &self,
        stack: &mut Stack<D>,
        id: SocketId,
        slots: Slots,
        now: u64,
    ) -> Result<u16, NetError> {
        for taken in 0..slots.count {
            let (word, bytes) = Slots::place(slots.first + taken);
            let Header { peer, len } = Header::from_word(self.memory.word(word));
            let fill = |room: &mut [u8]| self.memory.read(bytes, room);
            match stack.send(id, peer, len.into(), &fill, now) {
                Ok(Sending::Taken) => {}
                Ok(Sending::NoRoom) => return Ok(taken),
                Err(error) if taken == 0 => return Err(error),
                Err(_) => return Ok(taken),
            }
        }
        Ok(slots.count)
    }

    /// Copies datagrams that wait into slots; how many there were. They still wait.
    pub fn fill<D: Nic>(&self, stack: &Stack<D>, id: SocketId, slots: Slots) -> u16 {
        for filled in 0..slots.count {
            let Some((from, datagram)) = stack.datagram(id, filled.into()) else {
                return filled;
            };
            let (word, bytes) = Slots::place(slots.first + filled);
            self.memory.write(bytes, datagram);
            self.memory.set_word(word, header(from, datagram).to_word());
        }
        slots.count
    }

    /// Answers the calls that waited, if they need not wait any more.
    pub fn go_on<D: Nic>(&mut self, stack: &mut Stack<D>, responder: &mut P, now: u64) {
        let Some(id) = self.id else { return };
        match self.sender.take() {
            None => {}
            Some(Sender::Send(reply, slots)) => match self.send(stack, id, slots, now) {
                Ok(0) => self.sender = Some(Sender::Send(reply, slots)),
                // A caller that is gone does not need to know.
                Ok(sent) => _ = reply.answer(responder, &sent),
                Err(error) => _ = reply.refuse(responder, &error),
            },
            Some(Sender::Exchange(reply, exchange)) => {
                match self.send(stack, id, exchange.send, now) {
                    Ok(0) => self.sender = Some(Sender::Exchange(reply, exchange)),
                    Ok(sent) if sent == exchange.send.count => {
                        self.receiver = Some(Receiver::Exchange(reply, exchange.receive, sent));
                    }
                    Ok(sent) => {
                        let received = 0;
                        _ = reply.answer(responder, &Exchanged { sent, received });
                    }
                    Err(error) => _ = reply.refuse(responder, &error),
                }
            }
        }
        if stack.datagram(id, 0).is_none() {
            if stack.has_failed() {
                self.end_receiver(responder);
            }
            return;
        }
        // What a caller that has given up was to get waits for the next.
        let answered = match self.receiver.take() {
            None => return,
            Some(Receiver::Receive(reply, slots)) => {
                let received = self.fill(stack, id, slots);
                reply.answer(responder, &received).map(|()| received)
            }
            Some(Receiver::Exchange(reply, slots, sent)) => {
                let received = self.fill(stack, id, slots);
                let answer = Exchanged { sent, received };
                reply.answer(responder, &answer).map(|()| received)
            }
        };
        if let Ok(received) = answered {
            stack.discard(id, received.into());
        }
    }
}

impl<S: Memory, P: Responder> Socket<S, P> {
    /// Answers who waits for what cannot come any more.
    fn end_receiver(&mut self, responder: &mut P) {
        // A caller that is gone does not need to know.
        let _ = match self.receiver.take() {
            None => return,
            Some(Receiver::Receive(reply, _)) => reply.refuse(responder, &NetError::DeviceFailed),
            // What was sent is to be known: the next call is told why there is no answer.
            Some(Receiver::Exchange(reply, _, sent)) => {
                let received = 0;
                reply.answer(responder, &Exchanged { sent, received })
            }
        };
    }
}

const fn header(peer: SocketAddrV4, datagram: &[u8]) -> Header {
    let len = datagram.len() as u16;
    Header { peer, len }
}
