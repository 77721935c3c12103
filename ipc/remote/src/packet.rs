//! What begins each datagram of the protocol.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 3 | `F5 53 44`: the first byte begins no character of UTF-8, so no line of text is taken for a packet |
//! | 3 | 1 | version of what the sender speaks |
//! | 4 | 1 | kind |
//! | 5 | 1 | mode: 0 open, 1 keyed |
//! | 6 | 2 | zero |
//! | 8 | 8 | session: chosen by the server at random; 0 before there is one |
//! | 16 | 8 | number: a client's token for its hello and the answers; for frames a counter that never repeats |
//!
//! Hellos and their answers are the same in every version, so that a server of another one can say so.

use crate::bytes::{Reader, Writer};

/// Longest datagram, in bytes: with the headers of IPv4 and UDP it passes any link of today whole.
pub const DATAGRAM_MAX: usize = 1400;
/// Version of the protocol that is spoken here.
pub const VERSION: u8 = 1;
/// Bytes of the header.
pub(crate) const HEADER: usize = 24;

const MAGIC: [u8; 3] = [0xf5, b'S', b'D'];

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Client to server: let me in.
    Hello = 1,
    /// Server to client: say so again, with this cookie.
    Challenge = 2,
    /// Server to client: you are in, or not.
    Welcome = 3,
    /// Either way: part of a session.
    Frame = 4,
}

/// The header, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub version: u8,
    pub kind: Kind,
    pub keyed: bool,
    pub session: u64,
    pub number: u64,
}

impl Header {
    /// The header of a packet that is sent here.
    pub(crate) const fn new(kind: Kind, keyed: bool, session: u64, number: u64) -> Self {
        Self {
            version: VERSION,
            kind,
            keyed,
            session,
            number,
        }
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        Writer::new(&mut bytes)
            .bytes(&MAGIC)
            .u8(self.version)
            .u8(self.kind as u8)
            .u8(self.keyed.into())
            .u16(0)
            .u64(self.session)
            .u64(self.number);
        bytes
    }

    /// Takes a datagram apart into header and body. `None` if it is no packet; the version is not judged.
    pub(crate) fn parse(datagram: &[u8]) -> Option<(Self, &[u8])> {
        if datagram.len() > DATAGRAM_MAX {
            return None;
        }
        let mut reader = Reader::new(datagram);
        if reader.array()? != MAGIC {
            return None;
        }
        let version = reader.u8()?;
        let kind = match reader.u8()? {
            1 => Kind::Hello,
            2 => Kind::Challenge,
            3 => Kind::Welcome,
            4 => Kind::Frame,
            _ => return None,
        };
        let keyed = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        if reader.u16()? != 0 {
            return None;
        }
        let header = Self {
            version,
            kind,
            keyed,
            session: reader.u64()?,
            number: reader.u64()?,
        };
        Some((header, reader.rest()))
    }
}
