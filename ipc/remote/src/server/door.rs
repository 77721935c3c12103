//! Hellos: who gets in. See `hello.rs` for the exchange.
//!
//! Nothing is kept for a peer that has not proved its address, and keyed its key. After that a half-open session is, for a
//! few seconds; there are few of these, and the oldest makes room.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::time::Duration;

use snow::HandshakeState;

use super::bucket::Bucket;
use super::session::Session;
use super::{Mode, SESSIONS_MAX, Statistics};
use crate::hello::{Answer, Ask, Cookie, HELLO, Hello, Refusal, challenge};
use crate::packet::{Header, VERSION};
use crate::seal::{Seal, Side, mac};
use crate::time::Instant;
use crate::{Random, Role, noise};

/// Half-open sessions. A client's first frame follows within a round trip.
const HALF_OPEN_MAX: usize = 32;
const HALF_OPEN_TIME: Duration = Duration::from_secs(6);
/// A cookie is good for the rest of its epoch and for the next one.
const EPOCH: Duration = Duration::from_secs(10);

/// Groups of networks, of which each has challenges of its own: who floods with the addresses of one, forged or not, takes those of
/// the others in its group only.
const GROUPS: usize = 16;

/// A session whose client has not used its keys yet.
struct HalfOpen {
    peer: SocketAddrV4,
    /// Hash of the hello: one that comes twice gets the same answer.
    hello: [u8; 16],
    answer: Vec<u8>,
    role: Role,
    seal: Seal,
    until: Instant,
}

/// A session whose client has.
pub(super) struct Admitted {
    pub role: Role,
    pub seal: Seal,
}

/// What the door is the door of.
pub(super) struct Inside<'a> {
    pub sessions: &'a [Session],
    /// Whether anybody runs them.
    pub serves: bool,
}

impl Inside<'_> {
    /// Why no session can be added now.
    fn refusal(&self) -> Option<Refusal> {
        let is_full = self.sessions.len() >= SESSIONS_MAX;
        if !self.serves {
            Some(Refusal::Off)
        } else if is_full && !self.sessions.iter().any(Session::is_left) {
            Some(Refusal::Busy)
        } else {
            None
        }
    }
    /// Whether one of this peer has this number.
    fn has(&self, peer: SocketAddrV4, session: u64) -> bool {
        self.sessions.iter().any(|it| it.is(peer, session))
    }
}

pub(super) struct Door {
    mode: Mode,
    random: Random,
    /// Key of the cookies.
    secret: [u8; 32],
    half_open: VecDeque<HalfOpen>,
    /// Challenges cost a hash and a datagram; welcomes two multiplications on the curve, for a peer that has proved its address.
    challenges: [Bucket; GROUPS],
    welcomes: Bucket,
}

impl Door {
    pub(super) fn new(mode: Mode, mut random: Random) -> Self {
        let mut secret = [0; 32];
        random(&mut secret);
        Self {
            mode,
            random,
            secret,
            half_open: VecDeque::new(),
            challenges: [const { Bucket::new(64, 64) }; GROUPS],
            welcomes: Bucket::new(96, 32),
        }
    }
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.mode, Mode::Open)
    }

    /// Takes a hello; gives the datagram that answers it, if one does.
    pub(super) fn hello(
        &mut self,
        now: Instant,
        peer: SocketAddrV4,
        header: &Header,
        body: &[u8],
        inside: &Inside<'_>,
        statistics: &mut Statistics,
    ) -> Option<Vec<u8>> {
        let Some((hello, role, state)) = self.read(header, body) else {
            statistics.unauthenticated += 1;
            return None;
        };
        let epoch = now.as_nanos() / EPOCH.as_nanos() as u64;
        let cookie = self.cookie(peer, header, epoch);
        let before = epoch.checked_sub(1);
        let is_proved = hello.cookie == cookie
            || before.is_some_and(|epoch| hello.cookie == self.cookie(peer, header, epoch));
        if !is_proved {
            let group = self.group(peer);
            if !self.challenges[group].take(now) {
                statistics.throttled += 1;
                return None;
            }
            statistics.challenges += 1;
            return Some(challenge(header.keyed, header.number, &cookie));
        }
        let id = mac(&self.secret, &[&header.to_bytes(), body]);
        self.expire(now);
        if let Some(half) =
            (self.half_open.iter()).find(|half| half.peer == peer && half.hello == id)
        {
            return Some(half.answer.clone());
        }
        if !self.welcomes.take(now) {
            statistics.throttled += 1;
            return None;
        }
        let version = (header.version != VERSION).then_some(Refusal::Version(VERSION));
        let refused = match hello.ask {
            Ask::Session => version.or_else(|| inside.refusal()),
            Ask::Ping | Ask::Still(_) => version,
        };
        let mut session = [0; 8];
        (self.random)(&mut session);
        let session = u64::from_le_bytes(session);
        let answer = match (refused, hello.ask) {
            (Some(refusal), _) => {
                match refusal {
                    Refusal::Version(_) => statistics.other_version += 1,
                    Refusal::Busy | Refusal::Off => statistics.busy += 1,
                }
                Answer::Refused(refusal)
            }
            (None, Ask::Ping) => {
                statistics.pings += 1;
                Answer::Pong(role)
            }
            (None, Ask::Still(session)) => {
                statistics.questions += 1;
                if inside.has(peer, session) || self.half_open(peer, session).is_some() {
                    Answer::Known
                } else {
                    Answer::Unknown
                }
            }
            (None, Ask::Session) => Answer::In { role, session },
        };
        let (packet, seal) = match state {
            None => (
                answer.open(header.number),
                Seal::open(session, Side::Server),
            ),
            Some(mut state) => {
                let packet = answer.keyed(header.number, &mut state)?;
                let state = noise::transport(state).ok()?;
                (packet, Seal::keyed(session, Side::Server, state))
            }
        };
        if matches!(answer, Answer::In { .. }) {
            if self.half_open.len() >= HALF_OPEN_MAX {
                self.half_open.pop_front();
            }
            self.half_open.push_back(HalfOpen {
                peer,
                hello: id,
                answer: packet.clone(),
                role,
                seal,
                until: now + HALF_OPEN_TIME,
            });
        }
        Some(packet)
    }

    /// Reads a hello with each key.
    fn read(
        &mut self,
        header: &Header,
        body: &[u8],
    ) -> Option<(Hello, Role, Option<HandshakeState>)> {
        let Mode::Keyed(keys) = &self.mode else {
            return Hello::read_open(header, body).map(|hello| (hello, Role::Control, None));
        };
        let mut seed = noise::Seed::default();
        (self.random)(&mut seed);
        keys.iter().find_map(|(role, key)| {
            let (hello, state) = Hello::read_keyed(header, body, key, seed)?;
            Some((hello, role, Some(state)))
        })
    }

    /// The cookie of a peer's attempt.
    fn cookie(&self, peer: SocketAddrV4, header: &Header, epoch: u64) -> Cookie {
        mac(
            &self.secret,
            &[
                b"cookie",
                &peer.ip().octets(),
                &peer.port().to_le_bytes(),
                &header.number.to_le_bytes(),
                &epoch.to_le_bytes(),
            ],
        )
    }

    /// The group of a peer's network, the first 24 bits of its address. Nobody else can know which others are in it.
    fn group(&self, peer: SocketAddrV4) -> usize {
        let [a, b, c, _] = peer.ip().octets();
        let [byte, ..] = mac(&self.secret, &[b"group", &[a, b, c]]);
        usize::from(byte) % GROUPS
    }

    fn expire(&mut self, now: Instant) {
        while (self.half_open.front()).is_some_and(|half| now >= half.until) {
            self.half_open.pop_front();
        }
    }

    /// Opens the first frame of a half-open session: that one is open then, and its frame's length is given too.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        peer: SocketAddrV4,
        header: &Header,
        body: &[u8],
        frame: &mut [u8; crate::frame::FRAME_MAX],
    ) -> Option<Result<(Admitted, usize), crate::seal::Unsealed>> {
        self.expire(now);
        let at = self.half_open(peer, header.session)?;
        let half = self.half_open.get_mut(at)?;
        match half.seal.unseal(header, body, frame) {
            Err(error) => Some(Err(error)),
            Ok(length) => {
                let HalfOpen { role, seal, .. } = self.half_open.remove(at)?;
                Some(Ok((Admitted { role, seal }, length)))
            }
        }
    }

    /// The place of a half-open session.
    fn half_open(&self, peer: SocketAddrV4, session: u64) -> Option<usize> {
        let mut all = self.half_open.iter();
        all.position(|half| half.peer == peer && half.seal.session() == session)
    }

    /// Half-open sessions, for tests.
    #[cfg(test)]
    pub(crate) fn half_open_count(&self) -> usize {
        self.half_open.len()
    }
}

/// No answer of the door may be longer than what it answers.
const _: () = assert!(HELLO >= 128);
