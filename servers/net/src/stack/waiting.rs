//! What is to be sent and cannot yet, because nobody has said where on the link its next hop is.
//!
//! It waits here, so that the sockets are free for other hosts meanwhile. smoltcp asks by ARP once a second for all hosts together;
//! one that is silent would keep the next from being asked for. So whoever it does not ask for is asked for here.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::net::{Ipv4Addr, SocketAddrV4};

use ipc::proto::net::{NetError, SocketStatistics};
use smoltcp::phy::{Device, TxToken};
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr,
};

use super::frame::Reason;
use super::{EchoId, SocketId, Stack, instant};
use crate::device::Nic;

/// Datagrams of one socket that wait at once: each has places of its own, which no other one can take. Echo requests are few.
pub const WAITING_MAX: usize = 8;
/// How long each waits, in nanoseconds.
const PATIENCE: u64 = 3_000_000_000;
/// How often its host is asked for.
const ASK_EVERY: u64 = 1_000_000_000;
/// How long a host that did not answer is unreachable without being asked for again.
const SILENCE: u64 = 1_000_000_000;
/// Silent hosts that are remembered.
const SILENT_MAX: usize = 16;

/// What became of something that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The device has it.
    Sent,
    /// The device has no room.
    NoRoom,
    /// Its next hop is not known.
    NoNeighbour,
}

/// What waits.
#[derive(Debug)]
pub(super) enum Parcel {
    /// A datagram of a socket.
    Datagram {
        socket: SocketId,
        peer: SocketAddrV4,
        bytes: Box<[u8]>,
    },
    /// An echo request.
    Echo(EchoId),
}

/// Why a parcel was not sent: where that is counted, and what is told of an echo.
struct Loss {
    reason: Reason,
    of_socket: fn(&mut SocketStatistics) -> &mut u64,
    error: NetError,
}

impl Loss {
    const UNANSWERED: Self = Self {
        reason: |drops| &mut drops.unanswered,
        of_socket: |socket| &mut socket.unanswered,
        error: NetError::Unreachable,
    };
    const WAITING_FULL: Self = Self {
        reason: |drops| &mut drops.waiting_full,
        of_socket: |socket| &mut socket.dropped,
        error: NetError::Busy,
    };
    const DEVICE: Self = Self {
        reason: |drops| &mut drops.device,
        of_socket: |socket| &mut socket.dropped,
        error: NetError::DeviceFailed,
    };
}

#[derive(Debug)]
struct Waiter {
    parcel: Parcel,
    hop: Ipv4Addr,
    until: u64,
}

/// All that waits.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    waiters: VecDeque<Waiter>,
    ask_at: u64,
    /// Hosts that did not answer, and until when that is believed.
    silent: VecDeque<(Ipv4Addr, u64)>,
}

impl Waiting {
    /// When the next host is to be asked for, or given up.
    pub fn deadline(&self) -> Option<u64> {
        let waiters = self.waiters.iter();
        waiters.map(|waiter| waiter.until.min(self.ask_at)).min()
    }

    /// Whether something waits for this host.
    pub fn is_awaited(&self, hop: Ipv4Addr) -> bool {
        self.waiters.iter().any(|waiter| waiter.hop == hop)
    }

    /// Whether the host did not answer a moment ago.
    pub fn is_silent(&self, hop: Ipv4Addr, now: u64) -> bool {
        let mut silent = self.silent.iter();
        silent.any(|&(host, until)| host == hop && now < until)
    }

    /// Forgets what a socket wanted to send.
    pub fn forget(&mut self, gone: SocketId) {
        self.waiters.retain(
            |waiter| !matches!(waiter.parcel, Parcel::Datagram { socket, .. } if socket == gone),
        );
    }

    fn has_room(&self, parcel: &Parcel) -> bool {
        let Parcel::Datagram { socket: own, .. } = parcel else {
            return true;
        };
        let of_socket = |waiter: &&Waiter| matches!(&waiter.parcel, Parcel::Datagram { socket, .. } if socket == own);
        self.waiters.iter().filter(of_socket).count() < WAITING_MAX
    }
}

impl<D: Nic> Stack<D> {
    /// Lets something wait for its next hop, or drops it if too much does.
    pub(super) fn wait(&mut self, parcel: Parcel, hop: Ipv4Addr, now: u64) {
        if !self.waiting.has_room(&parcel) {
            return self.give_up(&parcel, &Loss::WAITING_FULL);
        }
        if self.waiting.waiters.is_empty() {
            self.waiting.ask_at = now.saturating_add(ASK_EVERY);
        }
        let until = now.saturating_add(PATIENCE);
        let waiter = Waiter { parcel, hop, until };
        self.waiting.waiters.push_back(waiter);
    }

    /// Tries again what waits: all of it if some host said where it is, if it is time to ask again, or if one has waited for long
    /// enough.
    pub(super) fn send_waiting(&mut self, answered: bool, now: u64) {
        let is_due = self.waiting.deadline().is_some_and(|due| due <= now);
        if self.waiting.waiters.is_empty() || !(answered || is_due) {
            return;
        }
        let asks = now >= self.waiting.ask_at;
        if asks {
            self.waiting.ask_at = now.saturating_add(ASK_EVERY);
        }
        let mut unknown = VecDeque::new();
        let mut waiters = core::mem::take(&mut self.waiting.waiters);
        while let Some(waiter) = waiters.pop_front() {
            // What waits for the same host keeps its order.
            if unknown.contains(&waiter.hop) {
                self.keep(waiter, now);
                continue;
            }
            match self.send_parcel(&waiter.parcel, now) {
                Attempt::Sent => {}
                Attempt::NoNeighbour => {
                    if asks {
                        self.ask(waiter.hop, now);
                    }
                    unknown.push_back(waiter.hop);
                    self.keep(waiter, now);
                }
                Attempt::NoRoom => {
                    // The others would find no room either; the device says when there is some. Nobody has been asked meanwhile, so
                    // nobody was silent.
                    waiters.push_front(waiter);
                    for waiter in &mut waiters {
                        waiter.until = now.saturating_add(PATIENCE);
                    }
                    self.waiting.waiters.append(&mut waiters);
                }
            }
        }
    }

    /// Lets it wait on, or gives it up if it has waited for long enough.
    fn keep(&mut self, waiter: Waiter, now: u64) {
        if now < waiter.until {
            self.waiting.waiters.push_back(waiter);
            return;
        }
        let silent = &mut self.waiting.silent;
        silent.retain(|&(host, until)| host != waiter.hop && now < until);
        if silent.len() == SILENT_MAX {
            silent.pop_front();
        }
        silent.push_back((waiter.hop, now.saturating_add(SILENCE)));
        self.give_up(&waiter.parcel, &Loss::UNANSWERED);
    }

    /// Drops all that waits for a device that does not send it.
    pub(super) fn abandon_waiting(&mut self, error: NetError) {
        let loss = Loss {
            error,
            ..Loss::DEVICE
        };
        for waiter in core::mem::take(&mut self.waiting.waiters) {
            self.give_up(&waiter.parcel, &loss);
        }
    }

    fn send_parcel(&mut self, parcel: &Parcel, now: u64) -> Attempt {
        match parcel {
            Parcel::Datagram {
                socket,
                peer,
                bytes,
            } => {
                let fill = |room: &mut [u8]| room.copy_from_slice(bytes);
                self.send_datagram(*socket, *peer, bytes.len(), &fill, now)
            }
            Parcel::Echo(echo) => self.send_echo(*echo, now),
        }
    }

    fn give_up(&mut self, parcel: &Parcel, loss: &Loss) {
        let count = (loss.reason)(&mut self.gate.drops);
        *count = count.saturating_add(1);
        match parcel {
            Parcel::Datagram { socket, .. } => self.count_unsent(*socket, loss.of_socket),
            Parcel::Echo(echo) => self.echoes.end(*echo, Err(loss.error)),
        }
    }

    /// Asks by ARP where a host is.
    pub(super) fn ask(&mut self, hop: Ipv4Addr, now: u64) {
        let Some(own) = self.address() else { return };
        let mac = self.gate.addresses.mac;
        let Some(token) = self.gate.transmit(instant(now)) else {
            return;
        };
        let ethernet = EthernetRepr {
            src_addr: mac,
            dst_addr: EthernetAddress::BROADCAST,
            ethertype: EthernetProtocol::Arp,
        };
        let arp = ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Request,
            source_hardware_addr: mac,
            source_protocol_addr: own.address(),
            target_hardware_addr: EthernetAddress::BROADCAST,
            target_protocol_addr: hop,
        };
        token.consume(ethernet.buffer_len() + arp.buffer_len(), |bytes| {
            let mut frame = EthernetFrame::new_unchecked(bytes);
            ethernet.emit(&mut frame);
            arp.emit(&mut ArpPacket::new_unchecked(frame.payload_mut()));
        });
    }
}
