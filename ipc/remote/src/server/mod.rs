//! The server's end: many sessions, each with a peer of its own.
//!
//! Who drives it passes in every datagram of its port, sends what [`Server::transmit`] gives, and handles the events. It
//! calls [`Server::transmit`] again at [`Server::deadline`].

mod bucket;
mod door;
pub(crate) mod line;
mod session;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};

use crate::control::{Control, End, Purpose};
use crate::frame::{FRAME_MAX, Frame, Stream};
use crate::packet::{DATAGRAM_MAX, Header, Kind, VERSION};
use crate::seal::Unsealed;
use crate::time::Instant;
use crate::{KeyRing, Random, Role, Statistics, Status};
use door::{Admitted, Door, Inside};
use line::Lines;
use session::{Change, Phase, Session};

/// Most sessions at once, those included that are ending.
pub const SESSIONS_MAX: usize = 32;
/// Sessions beyond these that are only told that they come too late.
const LATE_MAX: usize = 32;
/// Answers of the door that wait to be sent.
const ANSWERS_MAX: usize = 32;

/// Whom a server lets in.
pub enum Mode {
    /// Everybody with a private or loopback address.
    Open,
    /// Who has a key.
    Keyed(KeyRing),
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody opened a session.
    Opened {
        /// Its number, which no other session of this server gets.
        number: u32,
        /// What it may do.
        role: Role,
        /// What it is for.
        purpose: Purpose,
        /// Where it comes from.
        peer: SocketAddrV4,
    },
    /// A session that had nothing to read has something.
    Input(u32),
    /// The client of a session is gone: the number means nothing any more.
    Closed(u32, End),
}

/// Both ends of every session meet here.
pub struct Server {
    door: Door,
    sessions: Vec<Session>,
    lines: Lines,
    answers: VecDeque<(SocketAddrV4, Vec<u8>)>,
    events: VecDeque<Event>,
    statistics: Statistics,
    /// Number of the last session.
    number: u32,
    serves: bool,
    /// Whose turn it is to send.
    turn: usize,
}

impl Server {
    /// A server without sessions.
    #[must_use]
    pub fn new(mode: Mode, random: Random) -> Self {
        Self {
            door: Door::new(mode, random),
            sessions: Vec::new(),
            lines: Lines::new(),
            answers: VecDeque::new(),
            events: VecDeque::new(),
            statistics: Statistics::default(),
            number: 0,
            serves: true,
            turn: 0,
        }
    }

    /// Whether anybody runs sessions. While nobody does, clients are refused: `Off`.
    pub const fn set_serves(&mut self, serves: bool) {
        self.serves = serves;
    }

    /// Takes a datagram that came from `peer`.
    pub fn receive(&mut self, now: Instant, peer: SocketAddrV4, datagram: &[u8]) {
        if self.door.is_open() && !is_private(*peer.ip()) {
            self.statistics.not_private += 1;
            return;
        }
        let Some((header, body)) = Header::parse(datagram) else {
            self.text(now, peer, datagram);
            return;
        };
        if header.keyed == self.door.is_open() {
            self.statistics.wrong_mode += 1;
            return;
        }
        match header.kind {
            Kind::Hello => self.hello(now, peer, &header, body, datagram.len()),
            Kind::Frame if header.version == VERSION => self.frame(now, peer, &header, body),
            Kind::Frame | Kind::Challenge | Kind::Welcome => self.statistics.malformed += 1,
        }
    }

    fn hello(
        &mut self,
        now: Instant,
        peer: SocketAddrV4,
        header: &Header,
        body: &[u8],
        length: usize,
    ) {
        let inside = Inside {
            sessions: &self.sessions,
            serves: self.serves,
        };
        let answer = (self.door).hello(now, peer, header, body, &inside, &mut self.statistics);
        // None is longer than its hello (`door.rs`); this holds it to that.
        if let Some(answer) = answer.filter(|answer| answer.len() <= length) {
            if self.answers.len() < ANSWERS_MAX {
                self.answers.push_back((peer, answer));
            } else {
                self.statistics.unsent += 1;
            }
        }
    }

    fn frame(&mut self, now: Instant, peer: SocketAddrV4, header: &Header, body: &[u8]) {
        let mut buffer = [0; FRAME_MAX];
        let known = (self.sessions.iter_mut()).position(|session| session.is(peer, header.session));
        let opened = match known {
            Some(at) => {
                let seal = &mut self.sessions[at].seal;
                Some(
                    seal.unseal(header, body, &mut buffer)
                        .map(|length| (at, length)),
                )
            }
            None => match self.door.admit(now, peer, header, body, &mut buffer) {
                Some(Ok((new, length))) => match self.add(now, peer, new) {
                    Some(at) => Some(Ok((at, length))),
                    None => return self.statistics.busy += 1,
                },
                Some(Err(error)) => Some(Err(error)),
                None => None,
            },
        };
        let (at, length) = match opened {
            Some(Ok(opened)) => opened,
            Some(Err(Unsealed::Replayed)) => return self.statistics.replayed += 1,
            Some(Err(Unsealed::Forged)) => return self.statistics.unauthenticated += 1,
            None => return self.statistics.no_session += 1,
        };
        match Frame::parse(&buffer[..length]) {
            Some(frame) => self.framed(now, at, &frame),
            None => self.statistics.malformed += 1,
        }
    }

    /// Takes a frame of the session at this place.
    fn framed(&mut self, now: Instant, at: usize, frame: &Frame<'_>) {
        let Some(session) = self.sessions.get_mut(at) else {
            return;
        };
        let peer = session.peer;
        let (events, statistics) = (&mut self.events, &mut self.statistics);
        session.frame(now, frame, |session, change| {
            let number = session.number;
            events.push_back(match change {
                Change::Opened(purpose) => {
                    statistics.opened += 1;
                    Event::Opened {
                        number,
                        role: session.role,
                        purpose,
                        peer,
                    }
                }
                Change::Input => Event::Input(number),
                Change::Left => Event::Closed(number, End::Left),
                Change::Violated => Event::Closed(number, End::Violated),
            });
        });
    }

    /// Adds a session; gives its place. Where the last place went to another since its hello, its first words are its last: it is told.
    /// `None`: so many are being told that this one is not.
    fn add(&mut self, now: Instant, peer: SocketAddrV4, admitted: Admitted) -> Option<usize> {
        if self.sessions.len() >= SESSIONS_MAX
            && let Some(at) = self.sessions.iter().position(Session::is_left)
        {
            self.sessions.remove(at);
        }
        let is_full = self.sessions.len() >= SESSIONS_MAX;
        if self.sessions.len() >= SESSIONS_MAX + LATE_MAX {
            return None;
        }
        self.number = self.number.wrapping_add(1);
        let mut session = Session::new(now, self.number, peer, admitted);
        if is_full {
            self.statistics.busy += 1;
            session.end(now, End::Busy);
        }
        self.sessions.push(session);
        Some(self.sessions.len() - 1)
    }

    /// A datagram that is no packet.
    fn text(&mut self, now: Instant, peer: SocketAddrV4, datagram: &[u8]) {
        let command = line::command(datagram).filter(|_| self.door.is_open());
        let Some(command) = command else {
            self.statistics.malformed += 1;
            return;
        };
        let number = self.number.wrapping_add(1);
        if !self.serves || !self.lines.add(now, number, peer) {
            self.statistics.throttled += 1;
            return;
        }
        self.number = number;
        self.statistics.opened += 1;
        self.events.push_back(Event::Opened {
            number,
            role: Role::Observe,
            purpose: Purpose::Exec(command),
            peer,
        });
    }

    /// Writes the next datagram that is due, and says for whom and how long it is. To be called until there is none.
    pub fn transmit(
        &mut self,
        now: Instant,
        datagram: &mut [u8; DATAGRAM_MAX],
    ) -> Option<(SocketAddrV4, usize)> {
        if let Some((peer, answer)) = self.answers.pop_front() {
            datagram[..answer.len()].copy_from_slice(&answer);
            return Some((peer, answer.len()));
        }
        while let Some(number) = self.lines.cut(now) {
            self.events.push_back(Event::Closed(number, End::Left));
        }
        if let Some(sent) = self.lines.transmit(now, datagram) {
            return Some(sent);
        }
        self.end_sessions(now);
        // In turn, so that one that has much to send does not keep the others waiting.
        for _ in 0..self.sessions.len() {
            self.turn = (self.turn + 1) % self.sessions.len();
            let session = &mut self.sessions[self.turn];
            if let Some(length) = session.transmit(now, datagram) {
                return Some((session.peer, length));
            }
        }
        None
    }

    fn end_sessions(&mut self, now: Instant) {
        let (events, statistics) = (&mut self.events, &mut self.statistics);
        self.sessions.retain(|session| {
            let is_lost = session.channel.is_lost(now);
            if is_lost && session.phase == Phase::Running {
                statistics.lost += 1;
                events.push_back(Event::Closed(session.number, End::Lost));
            }
            !is_lost && !session.is_over(now)
        });
    }

    /// When `transmit` is to be called next, if nothing else happens. `None`: not before something does.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let answers = (!self.answers.is_empty()).then_some(Instant::default());
        let sessions = self.sessions.iter().map(Session::deadline);
        let lines = self.lines.deadline();
        answers.into_iter().chain(lines).chain(sessions).min()
    }

    /// The next thing that happened.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn session(&mut self, number: u32) -> Option<&mut Session> {
        (self.sessions.iter_mut())
            .find(|session| session.number == number && session.phase == Phase::Running)
    }

    /// Reads what was typed in a session: as much as there is and fits. 0: nothing now.
    pub fn read(&mut self, now: Instant, number: u32, buffer: &mut [u8]) -> usize {
        self.session(number)
            .map_or(0, |session| session.input(now, buffer))
    }

    /// Takes bytes for a session's client, as many as there is room for, and says how many. There is room again when the
    /// client has acknowledged some.
    pub fn write(&mut self, number: u32, stream: Stream, bytes: &[u8]) -> usize {
        if let Some(taken) = self.lines.write(number, bytes) {
            return taken;
        }
        match (self.session(number), stream) {
            (Some(session), Stream::Text | Stream::Binary) => session.channel.write(stream, bytes),
            _ => 0,
        }
    }

    /// Whether all that was written to a session has arrived, its end included, or nobody can know or wants it any more.
    pub fn is_flushed(&mut self, number: u32) -> bool {
        let mut sessions = self.sessions.iter();
        let session = sessions.find(|session| session.number == number);
        session.is_none_or(|session| session.channel.is_idle() || session.is_left())
    }

    /// The command of a session has ended: its client gets what was written before, and then this. The number means nothing
    /// from now on.
    pub fn finish(&mut self, now: Instant, number: u32, status: Status) {
        self.lines.finish(number);
        if let Some(session) = self.session(number) {
            session.last(now, &Control::Finished(status));
        }
    }

    /// Ends a session: its client gets what was written before, and then why. The number means nothing from now on.
    pub fn close(&mut self, now: Instant, number: u32, why: End) {
        self.lines.finish(number);
        if let Some(session) = self.session(number) {
            session.end(now, why);
        }
    }

    /// What came of all datagrams.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }
    /// Sessions that are open, those included that are ending.
    #[must_use]
    pub const fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// A frame as if a session's peer had sealed it, for tests.
    #[cfg(test)]
    pub(crate) fn inject(&mut self, now: Instant, number: u32, frame: &Frame<'_>) {
        let place = self
            .sessions
            .iter()
            .position(|session| session.number == number);
        if let Some(at) = place {
            self.framed(now, at, frame);
        }
    }
    /// Half-open sessions, for tests.
    #[cfg(test)]
    pub(crate) fn half_open(&self) -> usize {
        self.door.half_open_count()
    }
}

/// Whom the open mode may answer: nobody far away could be flooded with its answers.
fn is_private(address: Ipv4Addr) -> bool {
    address.is_loopback() || address.is_private()
}
