//! Packets of a session, sealed and opened.
//!
//! Keyed, a frame is encrypted and authenticated with the session's keys and the packet's number as nonce; nothing of the
//! header is left that could be changed and not noticed. Open, it lies there for everybody to read, with a hash behind it:
//! a UDP checksum may be absent, and a link is allowed to damage what it carries.

use alloc::boxed::Box;

use blake2::Blake2sMac;
use blake2::digest::consts::U16;
use blake2::digest::{FixedOutput, KeyInit, Update};
use snow::StatelessTransportState;

use crate::frame::FRAME_MAX;
use crate::packet::{DATAGRAM_MAX, HEADER, Header, Kind};
use crate::replay::Replay;

/// Bytes that a seal adds.
pub(crate) const TAG: usize = 16;

/// Which end seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// BLAKE2s of 16 bytes, keyed.
pub(crate) fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; TAG] {
    let mut mac = Blake2sMac::<U16>::new_from_slice(key)
        .unwrap_or_else(|_| unreachable!("BLAKE2s takes keys of up to 32 bytes"));
    for part in parts {
        mac.update(part);
    }
    mac.finalize_fixed().into()
}

enum Cipher {
    /// A hash that tells damage, not forgery.
    Open,
    Keyed(Box<StatelessTransportState>),
}

/// One end's sealing of one session.
pub(crate) struct Seal {
    session: u64,
    side: Side,
    cipher: Cipher,
    /// Number of the next packet.
    number: u64,
    replay: Replay,
}

/// Why a packet is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsealed {
    /// It is damaged or forged, or of the other mode.
    Forged,
    /// It was taken before, or is too old to know.
    Replayed,
}

impl Seal {
    pub(crate) const fn open(session: u64, side: Side) -> Self {
        Self::new(session, side, Cipher::Open)
    }
    pub(crate) const fn keyed(
        session: u64,
        side: Side,
        state: Box<StatelessTransportState>,
    ) -> Self {
        Self::new(session, side, Cipher::Keyed(state))
    }
    const fn new(session: u64, side: Side, cipher: Cipher) -> Self {
        let replay = Replay::new();
        Self {
            session,
            side,
            cipher,
            number: 0,
            replay,
        }
    }
    pub(crate) const fn session(&self) -> u64 {
        self.session
    }

    /// Makes a packet of a frame; gives its length. `None` if the numbers are used up, which takes a packet each nanosecond
    /// for centuries.
    pub(crate) fn seal(
        &mut self,
        frame: &[u8],
        datagram: &mut [u8; DATAGRAM_MAX],
    ) -> Option<usize> {
        let keyed = matches!(self.cipher, Cipher::Keyed(_));
        let header = Header::new(Kind::Frame, keyed, self.session, self.number).to_bytes();
        let (head, body) = datagram.split_at_mut(HEADER);
        head.copy_from_slice(&header);
        let length = match &self.cipher {
            Cipher::Open => {
                let (plain, tag) = body.split_at_mut(frame.len());
                plain.copy_from_slice(frame);
                tag[..TAG].copy_from_slice(&self.hash(self.side, &header, frame));
                frame.len() + TAG
            }
            Cipher::Keyed(state) => state.write_message(self.number, frame, body).ok()?,
        };
        self.number = self.number.checked_add(1)?;
        Some(HEADER + length)
    }

    /// Opens a packet into `frame`; gives its length.
    pub(crate) fn unseal(
        &mut self,
        header: &Header,
        body: &[u8],
        frame: &mut [u8; FRAME_MAX],
    ) -> Result<usize, Unsealed> {
        if !self.replay.is_fresh(header.number) {
            return Err(Unsealed::Replayed);
        }
        let length = body.len().checked_sub(TAG).ok_or(Unsealed::Forged)?;
        match &self.cipher {
            _ if length > FRAME_MAX => return Err(Unsealed::Forged),
            Cipher::Open if !header.keyed => {
                let (plain, tag) = body.split_at(length);
                let other = match self.side {
                    Side::Client => Side::Server,
                    Side::Server => Side::Client,
                };
                if tag != self.hash(other, &header.to_bytes(), plain) {
                    return Err(Unsealed::Forged);
                }
                frame[..length].copy_from_slice(plain);
            }
            Cipher::Keyed(state) if header.keyed => {
                state
                    .read_message(header.number, body, frame)
                    .map_err(|_| Unsealed::Forged)?;
            }
            _ => return Err(Unsealed::Forged),
        }
        self.replay.take(header.number);
        Ok(length)
    }

    /// The hash of the open mode. The direction is part of it, so that what comes back from a mirror is not taken.
    fn hash(&self, side: Side, header: &[u8; HEADER], frame: &[u8]) -> [u8; TAG] {
        let key: &[u8] = match side {
            Side::Client => b"sonde open client",
            Side::Server => b"sonde open server",
        };
        mac(key, &[header, frame])
    }
}
