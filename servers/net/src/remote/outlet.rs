//! The remote shell's port: what comes to it goes to the sessions, and what they send goes out by it.

use alloc::boxed::Box;
use core::net::SocketAddrV4;

use ipc::proto::Responder;
use remote_shell::DATAGRAM_MAX;

use super::{Mint, Remote};
use crate::device::Nic;
use crate::stack::{Sending, SocketId, Stack};

/// Datagrams that one turn takes at most, so that callers are served between them.
const TURN: usize = 64;

/// The port, and a datagram for which the device has had no room.
pub struct Outlet {
    socket: SocketId,
    datagram: Box<[u8; DATAGRAM_MAX]>,
    held: Option<(SocketAddrV4, usize)>,
}

impl Outlet {
    /// The port of this socket.
    #[must_use]
    pub fn new(socket: SocketId) -> Self {
        Self {
            socket,
            datagram: Box::new([0; DATAGRAM_MAX]),
            held: None,
        }
    }

    /// Takes what came, answers who waited for it, and sends what is due. `now`: nanoseconds since boot.
    pub fn turn<D: Nic, M: Mint<Handle = P::Handle>, P: Responder>(
        &mut self,
        stack: &mut Stack<D>,
        remote: &mut Remote<M, P>,
        responder: &mut P,
        now: u64,
    ) {
        remote.at(now);
        for _ in 0..TURN {
            let Some((peer, bytes)) = stack.datagram(self.socket, 0) else {
                break;
            };
            remote.receive(peer, bytes);
            stack.discard(self.socket, 1);
        }
        remote.poll(responder);
        while let Some((peer, length)) =
            (self.held.take()).or_else(|| remote.transmit(&mut self.datagram))
        {
            let datagram = &self.datagram[..length];
            let fill = |room: &mut [u8]| room.copy_from_slice(datagram);
            match stack.send(self.socket, peer, length, &fill, now) {
                Ok(Sending::Taken) => {}
                Ok(Sending::NoRoom) => {
                    self.held = Some((peer, length));
                    break;
                }
                // As if it were lost: it is sent again, and a peer that stays out of reach is given up.
                Err(_) => {}
            }
        }
        // Those who wait to write have room again.
        remote.poll(responder);
    }

    /// When the next turn is due, in nanoseconds since boot; `None`: when something comes, or the device has room again.
    #[must_use]
    pub fn deadline<D: Nic, M: Mint<Handle = P::Handle>, P: Responder>(
        &self,
        stack: &Stack<D>,
        remote: &Remote<M, P>,
    ) -> Option<u64> {
        if stack.datagram(self.socket, 0).is_some() {
            return Some(0);
        }
        remote.deadline().filter(|_| self.held.is_none())
    }
}

#[cfg(test)]
mod tests;
