//! Between the device and the IP stack: every frame is looked at once, on its way in and out, and counted.
//!
//! What smoltcp would drop without a word is dropped here, with its reason. So checksums are verified here and not again behind
//! it. Fragments go no further: smoltcp, built without reassembly, would take each for a whole datagram.

use smoltcp::phy::{Checksum, Device, DeviceCapabilities, RxToken, TxToken};
use smoltcp::time::Instant;

use super::bucket::Bucket;
use super::frame::{Addresses, Notice, Verdict, judge};
use crate::device::Nic;
use ipc::proto::net::Drops;

/// smoltcp's time, in nanoseconds since boot.
const fn nanoseconds(now: Instant) -> u64 {
    (now.total_micros() as u64).saturating_mul(1000)
}

/// Frames in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Traffic {
    const fn count(&mut self, bytes: usize) {
        self.frames = self.frames.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }
}

/// A device whose frames are counted.
pub struct Gate<D> {
    nic: D,
    /// What is for this host.
    pub addresses: Addresses,
    /// What the last frame says that the stack behind does not pass on.
    pub notice: Option<Notice>,
    /// Whether the device had no room when it was last asked to send.
    pub is_full: bool,
    /// Since when it has had none, in nanoseconds since boot.
    pub full_since: Option<u64>,
    unreachables: Bucket,
    pub received: Traffic,
    pub sent: Traffic,
    pub drops: Drops,
}

impl<D: Nic> Gate<D> {
    pub fn new(nic: D) -> Self {
        Self {
            addresses: Addresses::new(nic.mac()),
            nic,
            notice: None,
            is_full: false,
            full_since: None,
            unreachables: Bucket::default(),
            received: Traffic::default(),
            sent: Traffic::default(),
            drops: Drops::default(),
        }
    }

    pub const fn nic(&mut self) -> &mut D {
        &mut self.nic
    }

    /// Whether the device had no room, and has some again.
    pub fn has_room_again(&mut self, now: u64) -> bool {
        self.full_since.is_some() && self.transmit(super::instant(now)).is_some()
    }
}

impl<D: Nic> Device for Gate<D> {
    type RxToken<'a>
        = Incoming<'a, D::RxToken<'a>>
    where
        Self: 'a;
    type TxToken<'a>
        = Outgoing<'a, D::TxToken<'a>>
    where
        Self: 'a;

    fn receive(&mut self, now: Instant) -> Option<(Self::RxToken<'_>, Self::TxToken<'_>)> {
        let (token, reply) = self.nic.receive(now)?;
        let incoming = Incoming {
            token,
            addresses: &self.addresses,
            notice: &mut self.notice,
            received: &mut self.received,
            drops: &mut self.drops,
            unreachables: &mut self.unreachables,
            now: nanoseconds(now),
        };
        let outgoing = Outgoing {
            token: reply,
            sent: &mut self.sent,
        };
        Some((incoming, outgoing))
    }

    fn transmit(&mut self, now: Instant) -> Option<Self::TxToken<'_>> {
        let token = self.nic.transmit(now);
        self.is_full = token.is_none();
        self.full_since = match (self.full_since, self.is_full) {
            (_, false) => None,
            (None, true) => Some(nanoseconds(now)),
            (since, true) => since,
        };
        Some(Outgoing {
            token: token?,
            sent: &mut self.sent,
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = self.nic.capabilities();
        let checksum = &mut capabilities.checksum;
        // Those that come were verified; those that go are made.
        (checksum.ipv4, checksum.udp, checksum.icmpv4) = (Checksum::Tx, Checksum::Tx, Checksum::Tx);
        capabilities
    }
}

/// A frame that has arrived.
pub struct Incoming<'a, T> {
    token: T,
    addresses: &'a Addresses,
    notice: &'a mut Option<Notice>,
    received: &'a mut Traffic,
    drops: &'a mut Drops,
    unreachables: &'a mut Bucket,
    now: u64,
}

impl<T: RxToken> RxToken for Incoming<'_, T> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        let Self {
            token,
            addresses,
            notice,
            received,
            drops,
            unreachables,
            now,
        } = self;
        token.consume(|frame| {
            received.count(frame.len());
            match judge(frame, addresses) {
                Verdict::Pass(found) => {
                    *notice = found;
                    if found == Some(Notice::NoPort) {
                        drops.no_port = drops.no_port.saturating_add(1);
                        if !unreachables.take(now) {
                            return take(&[]);
                        }
                    }
                    take(frame)
                }
                Verdict::Drop(reason) => {
                    *notice = None;
                    let count = reason(drops);
                    *count = count.saturating_add(1);
                    // For the stack behind, a frame with nothing in it is none.
                    take(&[])
                }
            }
        })
    }
}

/// The right to send a frame.
pub struct Outgoing<'a, T> {
    token: T,
    sent: &'a mut Traffic,
}

impl<T: TxToken> TxToken for Outgoing<'_, T> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        self.sent.count(len);
        self.token.consume(len, fill)
    }
}
