//! How a session begins.
//!
//! ```text
//! client                                server
//!   hello, no cookie            ->              nothing is kept
//!                               <-  challenge   a cookie, which only who has this address gets
//!   hello with the cookie       ->              keyed: keys are agreed on; the session is half open
//!                               <-  welcome     session and role, or why not
//!   first frame                 ->              the session is open
//! ```
//!
//! Each hello has the same 256 bytes, and no answer is as long: who forges a source gets nobody flooded. Keyed, the server
//! is silent unless a hello was made with one of its keys, and the work of agreeing on keys is done only for who has proved
//! its address as well. A recorded hello has a cookie of its own address and of its time, so it gets a challenge at most. The
//! layout of hellos and answers stays as it is in later versions; the header says which version the client speaks.
//!
//! A client that hears nothing in a session asks with a hello, too: what has no session cannot be told from damage or forgery in a frame,
//! and so has no answer.
//!
//! | body of | bytes, behind the packet's header |
//! |---|---|
//! | hello | what for (1 session, 2 ping, 3 whether a session is still there), cookie (16, zero if none), that session (8, else zero), zeros; open: and a hash; keyed: as first message of Noise |
//! | challenge | cookie (16), hash (16) |
//! | welcome | result, role, version, session (8); open: and a hash (16); keyed: as second message of Noise |

use alloc::vec::Vec;
use core::fmt;

use snow::HandshakeState;

use crate::bytes::{Reader, Writer};
use crate::noise::{OVERHEAD, Seed, initiator, responder};
use crate::packet::{HEADER, Header, Kind, VERSION};
use crate::seal::{TAG, mac};
use crate::{Key, Role};

/// Bytes of a hello, whole. Nothing shorter or longer is one.
pub(crate) const HELLO: usize = 256;
/// Bytes of what is in it, without seal or hash.
const OPEN_PAYLOAD: usize = HELLO - HEADER - TAG;
const KEYED_PAYLOAD: usize = HELLO - HEADER - OVERHEAD;
/// Bytes of what is in a welcome.
const ANSWER: usize = 11;

/// Proof that whoever has it receives at the address it was made for.
pub(crate) type Cookie = [u8; TAG];

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Session,
    Ping,
    /// Whether the server still has this session.
    Still(u64),
}

/// What is in a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub ask: Ask,
    pub cookie: Cookie,
}

/// Why a server does not take a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It speaks this version of the protocol, and the client another.
    Version(u8),
    /// It has as many sessions as it can have.
    Busy,
    /// Nobody there runs sessions.
    Off,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(
                f,
                "the server speaks version {version} of the protocol, this client version {VERSION}"
            ),
            Self::Busy => f.write_str("the server has as many sessions as it can have"),
            Self::Off => f.write_str("the server has no shell that would run a session"),
        }
    }
}

/// What is in a welcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    In {
        role: Role,
        session: u64,
    },
    Pong(Role),
    /// The server has the session that was asked about.
    Known,
    /// It has not.
    Unknown,
    Refused(Refusal),
}

/// The hash by which damage of an unsealed body is noticed.
fn hash(header: &[u8], body: &[u8]) -> [u8; TAG] {
    mac(b"sonde hello", &[header, body])
}

/// The body without the hash behind it, if that is right.
fn whole<'a>(header: &Header, body: &'a [u8]) -> Option<&'a [u8]> {
    let (body, tag) = body.split_at_checked(body.len().checked_sub(TAG)?)?;
    (tag == hash(&header.to_bytes(), body)).then_some(body)
}

/// An unsealed packet.
fn plain(header: &Header, body: &[u8]) -> Vec<u8> {
    let header = header.to_bytes();
    [&header[..], body, &hash(&header, body)].concat()
}

impl Hello {
    fn to_bytes(self) -> [u8; OPEN_PAYLOAD] {
        let mut bytes = [0; OPEN_PAYLOAD];
        let (ask, session) = match self.ask {
            Ask::Session => (1, 0),
            Ask::Ping => (2, 0),
            Ask::Still(session) => (3, session),
        };
        let mut writer = Writer::new(&mut bytes);
        writer.u8(ask).bytes(&self.cookie).u64(session);
        bytes
    }
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let ask = reader.u8()?;
        let cookie = reader.array()?;
        let ask = match (ask, reader.u64()?) {
            (1, 0) => Ask::Session,
            (2, 0) => Ask::Ping,
            (3, session) => Ask::Still(session),
            _ => return None,
        };
        let padding = reader.rest();
        padding
            .iter()
            .all(|&byte| byte == 0)
            .then_some(Self { ask, cookie })
    }

    /// The header of a hello, whose token its answers will have.
    pub(crate) const fn header(keyed: bool, token: u64) -> Header {
        Header::new(Kind::Hello, keyed, 0, token)
    }
    /// The packet of the open mode.
    pub(crate) fn open(self, header: &Header) -> Vec<u8> {
        plain(header, &self.to_bytes())
    }
    /// The packet of the keyed mode, and what reads its welcome. `None` only if the algorithms fail.
    pub(crate) fn keyed(
        self,
        header: &Header,
        key: &Key,
        seed: Seed,
    ) -> Option<(Vec<u8>, HandshakeState)> {
        let header = header.to_bytes();
        let mut state = initiator(key, seed, &header).ok()?;
        let mut packet = Vec::from(header);
        packet.resize(HELLO, 0);
        let payload = &self.to_bytes()[..KEYED_PAYLOAD];
        state.write_message(payload, &mut packet[HEADER..]).ok()?;
        Some((packet, state))
    }

    /// Reads one of the open mode.
    pub(crate) fn read_open(header: &Header, body: &[u8]) -> Option<Self> {
        (body.len() == HELLO - HEADER)
            .then(|| whole(header, body))
            .flatten()
            .and_then(Self::parse)
    }
    /// Reads one that was made with this key, and gives what writes its welcome.
    pub(crate) fn read_keyed(
        header: &Header,
        body: &[u8],
        key: &Key,
        seed: Seed,
    ) -> Option<(Self, HandshakeState)> {
        if body.len() != HELLO - HEADER {
            return None;
        }
        let mut state = responder(key, seed, &header.to_bytes()).ok()?;
        let mut payload = [0; KEYED_PAYLOAD];
        let length = state.read_message(body, &mut payload).ok()?;
        Some((Self::parse(payload.get(..length)?)?, state))
    }
}

/// The packet of a challenge.
pub(crate) fn challenge(keyed: bool, token: u64, cookie: &Cookie) -> Vec<u8> {
    plain(&Header::new(Kind::Challenge, keyed, 0, token), cookie)
}

/// The cookie of a challenge.
pub(crate) fn read_challenge(header: &Header, body: &[u8]) -> Option<Cookie> {
    whole(header, body)?.try_into().ok()
}

impl Answer {
    fn to_bytes(self) -> [u8; ANSWER] {
        let mut bytes = [0; ANSWER];
        let role = |role| match role {
            Role::Observe => 0,
            Role::Control => 1,
        };
        let (result, role, session) = match self {
            Self::In { role: is, session } => (0, role(is), session),
            Self::Pong(is) => (1, role(is), 0),
            Self::Refused(Refusal::Version(_)) => (2, 0, 0),
            Self::Refused(Refusal::Busy) => (3, 0, 0),
            Self::Refused(Refusal::Off) => (4, 0, 0),
            Self::Known => (5, 0, 0),
            Self::Unknown => (6, 0, 0),
        };
        let version = match self {
            Self::Refused(Refusal::Version(version)) => version,
            _ => VERSION,
        };
        let mut writer = Writer::new(&mut bytes);
        writer.u8(result).u8(role).u8(version).u64(session);
        bytes
    }
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let result = reader.u8()?;
        let role = match reader.u8()? {
            0 => Role::Observe,
            1 => Role::Control,
            _ => return None,
        };
        let version = reader.u8()?;
        let session = reader.u64()?;
        match result {
            _ if !reader.rest().is_empty() => None,
            0 => Some(Self::In { role, session }),
            1 => Some(Self::Pong(role)),
            2 => Some(Self::Refused(Refusal::Version(version))),
            3 => Some(Self::Refused(Refusal::Busy)),
            4 => Some(Self::Refused(Refusal::Off)),
            5 => Some(Self::Known),
            6 => Some(Self::Unknown),
            _ => None,
        }
    }

    /// The packet of the open mode.
    pub(crate) fn open(self, token: u64) -> Vec<u8> {
        plain(
            &Header::new(Kind::Welcome, false, 0, token),
            &self.to_bytes(),
        )
    }
    /// The packet of the keyed mode. `None` only if the algorithms fail.
    pub(crate) fn keyed(self, token: u64, state: &mut HandshakeState) -> Option<Vec<u8>> {
        let mut packet = Vec::from(Header::new(Kind::Welcome, true, 0, token).to_bytes());
        packet.resize(HEADER + OVERHEAD + ANSWER, 0);
        state
            .write_message(&self.to_bytes(), &mut packet[HEADER..])
            .ok()?;
        Some(packet)
    }
    /// Reads one of the open mode.
    pub(crate) fn read_open(header: &Header, body: &[u8]) -> Option<Self> {
        whole(header, body).and_then(Self::parse)
    }
    /// Reads one that answers the hello of this handshake.
    pub(crate) fn read_keyed(body: &[u8], state: &mut HandshakeState) -> Option<Self> {
        if body.len() != OVERHEAD + ANSWER {
            return None;
        }
        let mut payload = [0; ANSWER];
        state.read_message(body, &mut payload).ok()?;
        Self::parse(&payload)
    }
}
