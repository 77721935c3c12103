//! The remote shell's server end: sessions that come by UDP, handed to the shell as handles.
//!
//! Between the wire (`remote_shell::Server`) and the protocols `remote` and `stream`: what is written to a session's handle
//! goes out as the link takes it, what came is given to who reads. Nothing here waits, and time is passed in. Memory is bounded:
//! sessions are few, and of each one there are few calls that wait, beside what the wire keeps.

pub mod off;
mod outlet;
pub mod refusals;
mod service;
mod session;
pub mod settings;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::time::Duration;

use ipc::abi::Error;
use ipc::proto::remote::{Accept, RemoteError};
use ipc::proto::{Parked, Responder};
pub use outlet::Outlet;
use remote_shell::{
    DATAGRAM_MAX, End, Instant, Random, Server, ServerEvent, ServerMode, Statistics,
};
use session::Session;

/// Bit of the badges of sessions: those of programs are process ids.
const SESSION_BADGE: u64 = 1 << 63;
/// How long a session waits for the shell to accept it.
const ACCEPT_MAX: Duration = Duration::from_secs(10);

/// Makes handles.
pub trait Mint {
    /// An owned handle.
    type Handle;
    /// A handle to the endpoint `remote` with a badge, which may be called, duplicated and passed on.
    ///
    /// # Errors
    /// See the call `handle_mint`.
    fn mint(&mut self, badge: u64) -> Result<Self::Handle, Error>;
}

/// Sessions between the wire and the shell.
pub struct Remote<M, P: Responder> {
    mint: M,
    server: Server,
    sessions: Vec<Session<P>>,
    /// The shell, which waits for the next session.
    acceptor: Option<Parked<P, Accept>>,
    /// The badge of the next session.
    next_badge: u64,
    now: Instant,
}

impl<M: Mint<Handle = P::Handle>, P: Responder> Remote<M, P> {
    /// Without sessions. `now`: nanoseconds since boot.
    pub fn new(mint: M, mode: ServerMode, random: Random, now: u64) -> Self {
        let mut server = Server::new(mode, random);
        // Until a shell asks for sessions there is nobody who would run them.
        server.set_serves(false);
        Self {
            mint,
            server,
            sessions: Vec::new(),
            acceptor: None,
            // Handles of an earlier instance's sessions may still be around, and must name none of this one's. That one made
            // fewer of them than nanoseconds have passed.
            next_badge: SESSION_BADGE | now,
            now: Instant::from_nanos(now),
        }
    }

    /// Says what time it is, in nanoseconds since boot: before anything else that happens then.
    pub const fn at(&mut self, now: u64) {
        self.now = Instant::from_nanos(now);
    }

    /// Takes a datagram that came to the port.
    pub fn receive(&mut self, peer: SocketAddrV4, datagram: &[u8]) {
        self.server.receive(self.now, peer, datagram);
    }

    /// Hands on what came, and answers whoever waited for it. To be called after datagrams and calls, and at the deadline.
    pub fn poll(&mut self, responder: &mut P) {
        while let Some(event) = self.server.event() {
            match event {
                ServerEvent::Opened {
                    number,
                    role,
                    purpose,
                    peer,
                } => {
                    let until = self.now + ACCEPT_MAX;
                    let session = Session::new(number, role, &purpose, peer, until);
                    self.sessions.push(session);
                }
                ServerEvent::Input(_) => {}
                ServerEvent::Closed(number, _) => {
                    for session in &mut self.sessions {
                        session.is_over |= session.number() == number;
                    }
                }
            }
        }
        self.hand_over(responder);
        let (server, now) = (&mut self.server, self.now);
        self.sessions.retain_mut(|session| {
            session.go_on(server, responder, now);
            if session.badge.is_some() {
                return true;
            }
            if now >= session.until {
                server.close(now, session.number(), End::Failed);
                session.is_over = true;
            }
            !session.is_over
        });
    }

    /// Gives the shell the first session that it does not have.
    fn hand_over(&mut self, responder: &mut P) {
        while let Some(session) =
            (self.sessions.iter_mut()).find(|session| session.badge.is_none() && !session.is_over)
            && let Some(acceptor) = self.acceptor.take()
        {
            let badge = self.next_badge;
            let Ok(handle) = self.mint.mint(badge) else {
                let _ = acceptor.refuse(responder, &RemoteError::Busy);
                return;
            };
            self.next_badge += 1;
            // One that is gone does not have it: the handle was closed, and what is told of its badge is for no session.
            if acceptor.answer_with(responder, &(), [handle]).is_ok() {
                session.badge = Some(badge);
            }
        }
    }

    /// Writes the next datagram that is due; says for whom, and how long it is. To be called until there is none.
    pub fn transmit(&mut self, datagram: &mut [u8; DATAGRAM_MAX]) -> Option<(SocketAddrV4, usize)> {
        self.server.transmit(self.now, datagram)
    }

    /// When to poll and to transmit at the latest, in nanoseconds since boot; `None`: when something comes.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        let unaccepted = (self.sessions.iter())
            .filter(|session| session.badge.is_none())
            .map(|session| session.until);
        let due = unaccepted.chain(self.server.deadline()).min()?;
        Some(due.as_nanos())
    }

    /// Nobody has a handle with this badge any more.
    pub fn closed(&mut self, badge: u64) {
        let place = (self.sessions.iter()).position(|session| session.badge == Some(badge));
        if let Some(place) = place {
            let session = self.sessions.swap_remove(place);
            self.server.close(self.now, session.number(), End::Left);
        }
    }

    /// What came of the datagrams.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        self.server.statistics()
    }

    fn called(&mut self, badge: u64) -> Option<&mut Session<P>> {
        (self.sessions.iter_mut()).find(|session| session.badge == Some(badge))
    }
}
