//! The protocol `net`, served: each call is a decision here and a step of the stack, and those that have to wait are parked.

mod service;
mod socket;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use ipc::abi::Error;
use ipc::proto::net::{Echo, NetError, PING_MS_MAX, Ping, Pong, SLOTS_MAX, Slots, SocketInfo};
use ipc::proto::{Parked, Responder, remote};

use crate::device::Nic;
use crate::stack::{EchoId, SOCKETS_MAX, Stack};
use socket::Socket;

/// Sockets that one program can have.
pub const SOCKETS_OF_PROGRAM_MAX: usize = 8;
/// Echoes that one program can have under way.
pub const ECHOES_OF_PROGRAM_MAX: usize = 4;
/// Bit of the badges of sockets: those of programs are process ids.
const SOCKET_BADGE: u64 = 1 << 63;

/// Memory that is shared with a program, which may write to it at any time. What is outside reads as nothing.
pub trait Memory {
    /// A word; `at` is a multiple of 8.
    fn word(&self, at: usize) -> u64;
    /// Writes a word; `at` is a multiple of 8.
    fn set_word(&self, at: usize, word: u64);
    /// Copies bytes out; `at` is a multiple of 8.
    fn read(&self, at: usize, out: &mut [u8]);
    /// Copies bytes in; `at` is a multiple of 8.
    fn write(&self, at: usize, bytes: &[u8]);
}

/// What the server needs of the system it runs on, beside the device.
pub trait Machine {
    /// An owned handle.
    type Handle;
    /// Memory of a program.
    type Memory: Memory;

    /// Nanoseconds since boot.
    fn now(&self) -> u64;

    /// A handle to the server's endpoint with a badge.
    ///
    /// # Errors
    /// See the call `handle_mint`.
    fn mint(&mut self, badge: u64) -> Result<Self::Handle, Error>;

    /// Maps the first `pages` pages of a memory object.
    ///
    /// # Errors
    /// See the call `map`.
    fn map(&mut self, memory: Self::Handle, pages: u64) -> Result<Self::Memory, Error>;
}

/// The server.
pub struct Server<M: Machine, D: Nic, P: Responder> {
    machine: M,
    /// `None` on a machine without a device.
    stack: Option<Stack<D>>,
    sockets: Vec<Socket<M::Memory, P>>,
    /// The badge of the next socket.
    next_badge: u64,
    echoes: Vec<Asked<P>>,
    /// What the remote shell counts; `None` while it is off.
    remote: Option<remote::Statistics>,
}

/// The network and the socket that a call was made through.
type Called<'a, M, D, P> = (&'a mut Stack<D>, &'a mut Socket<<M as Machine>::Memory, P>);

/// An echo under way.
struct Asked<P: Responder> {
    id: EchoId,
    by: u64,
    reply: Parked<P, Echo>,
}

impl<M: Machine, D: Nic, P: Responder<Handle = M::Handle>> Server<M, D, P> {
    /// A server without sockets.
    pub fn new(machine: M, stack: Option<Stack<D>>) -> Self {
        // Handles of an earlier server's sockets may still be around, and must name none of this one's. That one made fewer of
        // them than nanoseconds have passed.
        let next_badge = SOCKET_BADGE | machine.now();
        Self {
            machine,
            stack,
            sockets: Vec::new(),
            next_badge,
            echoes: Vec::new(),
            remote: None,
        }
    }

    /// The network, if there is a device.
    pub const fn stack(&mut self) -> Option<&mut Stack<D>> {
        self.stack.as_mut()
    }

    /// Lets the network go on, and answers whoever waited for it.
    pub fn poll(&mut self, responder: &mut P) {
        let now = self.machine.now();
        let Some(stack) = &mut self.stack else { return };
        stack.poll(now);
        while let Some((id, result)) = stack.ended_echo() {
            let place = self.echoes.iter().position(|asked| asked.id == id);
            let Some(asked) = place.map(|place| self.echoes.swap_remove(place)) else {
                continue;
            };
            // Whoever does not wait any more does not need to know.
            let _ = match result {
                Ok(ns) => asked.reply.answer(responder, &Pong { ns }),
                Err(error) => asked.reply.refuse(responder, &error),
            };
        }
        for socket in &mut self.sockets {
            socket.go_on(stack, responder, now);
        }
    }

    /// What to tell of the remote shell; `None`: that it is off.
    pub const fn set_remote(&mut self, statistics: Option<remote::Statistics>) {
        self.remote = statistics;
    }

    /// When to poll at the latest, in nanoseconds since boot; `None`: when the device says so.
    pub fn deadline(&mut self) -> Option<u64> {
        let now = self.machine.now();
        self.stack.as_mut()?.deadline(now)
    }

    /// Nobody has a handle with this badge any more.
    pub fn closed(&mut self, badge: u64) {
        let place = self.sockets.iter().position(|socket| socket.badge == badge);
        let Some(place) = place else { return };
        let socket = self.sockets.swap_remove(place);
        if let (Some(id), Some(stack)) = (socket.id, &mut self.stack) {
            stack.close(id);
        }
    }

    fn online(&mut self) -> Result<&mut Stack<D>, NetError> {
        self.stack.as_mut().ok_or(NetError::NoDevice)
    }

    fn called(&mut self, badge: u64) -> Result<Called<'_, M, D, P>, NetError> {
        let stack = self.stack.as_mut().ok_or(NetError::NoDevice)?;
        let mut sockets = self.sockets.iter_mut();
        let socket = sockets.find(|socket| socket.badge == badge);
        Ok((stack, socket.ok_or(NetError::NotASocket)?))
    }

    /// Makes a socket in the memory of `owner`.
    fn make_socket(
        &mut self,
        owner: u64,
        slots: u16,
        memory: M::Handle,
    ) -> Result<M::Handle, NetError> {
        self.online()?;
        if owner & SOCKET_BADGE != 0 {
            return Err(NetError::NotASocket);
        }
        if !(1..=SLOTS_MAX).contains(&slots) {
            return Err(NetError::BadArgument);
        }
        let own = self.sockets.iter().filter(|socket| socket.owner == owner);
        if own.count() >= SOCKETS_OF_PROGRAM_MAX {
            return Err(NetError::Quota);
        }
        if self.sockets.len() >= SOCKETS_MAX {
            return Err(NetError::Busy);
        }
        let memory = self.machine.map(memory, Slots::pages(slots));
        let memory = memory.map_err(|error| match error {
            Error::OutOfMemory | Error::QuotaExceeded | Error::LimitReached => NetError::Busy,
            _ => NetError::BadArgument,
        })?;
        let badge = self.next_badge;
        let handle = self.machine.mint(badge).map_err(|_| NetError::Busy)?;
        self.next_badge += 1;
        self.sockets.push(Socket::new(badge, owner, memory, slots));
        Ok(handle)
    }

    /// The first socket whose place is at least this.
    fn socket_from(&mut self, from: u16) -> Option<SocketInfo> {
        let stack = self.stack.as_mut()?;
        let socket = self.sockets.get(usize::from(from))?;
        let statistics = socket.id.map(|id| stack.statistics(id));
        Some(SocketInfo {
            index: from,
            owner: socket.owner as u32,
            port: socket.id.map(|id| stack.port(id)),
            statistics: statistics.unwrap_or_default(),
        })
    }

    /// Begins an echo for `by`.
    fn begin_echo(&mut self, by: u64, ping: Ping) -> Result<EchoId, NetError> {
        let now = self.machine.now();
        let own = self.echoes.iter().filter(|asked| asked.by == by).count();
        let stack = self.online()?;
        if !(1..=PING_MS_MAX).contains(&ping.timeout_ms) {
            return Err(NetError::BadArgument);
        }
        if own >= ECHOES_OF_PROGRAM_MAX {
            return Err(NetError::Quota);
        }
        let deadline = now.saturating_add(u64::from(ping.timeout_ms) * 1_000_000);
        stack.ping(Ipv4Addr::from(ping.host), ping.bytes.into(), deadline, now)
    }
}
