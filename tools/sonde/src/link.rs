//! The way to a machine: a socket, and the protocol's client, which is given time, random bytes and datagrams, and gives datagrams back.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use remote_shell::{Client, ClientEvent, DATAGRAM_MAX, Mode, Purpose, Random};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::trouble::{Trouble, What};

/// Datagrams that are taken in a row before what they brought is looked at.
const BATCH: usize = 64;
/// How long a session that is left may need for its last words.
const FAREWELL_MAX: Duration = Duration::from_secs(2);

/// A session with a machine, or a ping.
pub struct Link {
    socket: UdpSocket,
    peer: SocketAddr,
    client: Client,
    keyed: bool,
    /// What the client's time is counted from.
    epoch: Instant,
}

/// What a wait ended with, beside the link: the descriptors that are ready, in the order in which they were given.
pub type Ready = Vec<bool>;

impl Link {
    /// Asks for a session. Nothing is sent before the first [`Self::turn`].
    ///
    /// # Errors
    /// If this host has no way there.
    pub fn session(peer: SocketAddr, mode: Mode, purpose: Purpose) -> Result<Self, Trouble> {
        Self::new(peer, mode, |mode, random, now| {
            Client::new(mode, purpose, random, now)
        })
    }

    /// Asks whether a machine is there.
    ///
    /// # Errors
    /// If this host has no way there.
    pub fn ping(peer: SocketAddr, mode: Mode) -> Result<Self, Trouble> {
        Self::new(peer, mode, Client::ping)
    }

    fn new(
        peer: SocketAddr,
        mode: Mode,
        client: impl FnOnce(Mode, Random, remote_shell::Instant) -> Client,
    ) -> Result<Self, Trouble> {
        let local = |error| Trouble {
            peer,
            what: What::Local(error),
        };
        let unreachable = |error| Trouble {
            peer,
            what: What::Unreachable(error),
        };
        let socket = socket(peer).map_err(unreachable)?;
        let random = random().map_err(local)?;
        Ok(Self {
            socket,
            peer,
            keyed: matches!(mode, Mode::Keyed(_)),
            client: client(mode, random, remote_shell::Instant::default()),
            epoch: Instant::now(),
        })
    }

    /// Takes the datagrams that came, and sends those that are due.
    ///
    /// # Errors
    /// If the machine cannot be reached.
    pub fn turn(&mut self) -> Result<(), Trouble> {
        let mut datagram = [0; DATAGRAM_MAX];
        for _ in 0..BATCH {
            match self.socket.recv(&mut datagram) {
                Ok(length) => self.client.receive(self.now(), &datagram[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(self.failed(error)),
            }
        }
        while let Some(length) = self.client.transmit(self.now(), &mut datagram) {
            match self.socket.send(&datagram[..length]) {
                Ok(_) => {}
                // One that this host had no room for is lost like any other, and is sent again.
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(())
    }

    /// What happened.
    ///
    /// # Errors
    /// If that ends the session otherwise than it was to.
    pub fn event(&mut self) -> Result<Option<ClientEvent>, Trouble> {
        let what = match self.client.event() {
            Some(ClientEvent::Refused(refusal)) => What::Refused(refusal),
            Some(ClientEvent::Closed(end)) => What::Ended(end),
            Some(ClientEvent::Silent) => What::Silent { keyed: self.keyed },
            other => return Ok(other),
        };
        Err(self.trouble(what))
    }

    /// Gives bytes to the session; how many it had room for.
    pub fn send(&mut self, bytes: &[u8]) -> usize {
        self.client.send(bytes)
    }

    /// Waits until there is something to do here, or with one of these.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait(&self, others: &[(BorrowedFd<'_>, PollFlags)]) -> Result<Ready, Trouble> {
        let now = self.now();
        let due = self.client.deadline().map(|deadline| deadline.since(now));
        self.wait_for(due, others)
            .map_err(|error| self.trouble(What::Local(error)))
    }

    fn wait_for(
        &self,
        time: Option<Duration>,
        others: &[(BorrowedFd<'_>, PollFlags)],
    ) -> io::Result<Ready> {
        let time = time.map(Timespec::try_from).transpose();
        let time = time.map_err(io::Error::other)?;
        let socket = PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN);
        let others = others.iter();
        let others = others.map(|&(fd, flags)| PollFd::from_borrowed_fd(fd, flags));
        let mut all: Vec<PollFd<'_>> = [socket].into_iter().chain(others).collect();
        match poll(&mut all, time.as_ref()) {
            Ok(_) => Ok(all[1..].iter().map(|fd| !fd.revents().is_empty()).collect()),
            Err(rustix::io::Errno::INTR) => Ok(vec![false; all.len() - 1]),
            Err(error) => Err(error.into()),
        }
    }

    /// Leaves the session, and sees to it that the machine hears of that, if it still hears anything.
    pub fn close(mut self) {
        let give_up = Instant::now() + FAREWELL_MAX;
        self.client.close(self.now());
        loop {
            let is_sent = self.turn().is_ok();
            while self.client.event().is_some() {}
            let left = give_up.saturating_duration_since(Instant::now());
            if !is_sent || self.client.is_over() || left.is_zero() {
                return;
            }
            let now = self.now();
            let due = self.client.deadline().map_or(left, |due| due.since(now));
            if self.wait_for(Some(due.min(left)), &[]).is_err() {
                return;
            }
        }
    }

    fn now(&self) -> remote_shell::Instant {
        remote_shell::Instant::default() + self.epoch.elapsed()
    }

    fn failed(&self, error: io::Error) -> Trouble {
        self.trouble(match error.kind() {
            ErrorKind::ConnectionRefused => What::NobodyListens,
            _ => What::Unreachable(error),
        })
    }

    const fn trouble(&self, what: What) -> Trouble {
        Trouble {
            peer: self.peer,
            what,
        }
    }
}

/// A socket of its own port, which hears this peer alone, and hears of refusals.
///
/// # Errors
/// If there is none to be had, or no way to the peer.
pub fn socket(peer: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(peer)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The kernel's random bytes.
fn random() -> io::Result<Random> {
    let mut source = File::open("/dev/urandom")?;
    // Once open, it has bytes: to go on without them would be to go on with keys that others can guess.
    Ok(Box::new(move |bytes| {
        source
            .read_exact(bytes)
            .expect("the kernel's random bytes never end");
    }))
}
