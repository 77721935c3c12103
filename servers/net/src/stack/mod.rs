//! IPv4 on one Ethernet device: smoltcp, and what has to be around it for many programs to share it.
//!
//! Nothing here waits, and time is passed in. The owner calls [`Stack::poll`] when the device says that something happened, and at
//! [`Stack::deadline`]; each poll does a bounded amount of work.
//!
//! smoltcp keeps a datagram whose next hop it does not know at the head of its socket, and sends no other of that socket for a
//! second. One silent neighbour, or a forged one, would hold up everybody else whom a socket serves. So its sockets hold one
//! datagram each, and one that cannot go yet is taken back and waits apart (`waiting`).

mod bucket;
mod datagrams;
mod echo;
mod frame;
mod gate;
mod lease;
mod queue;
#[cfg(test)]
mod tests;
mod waiting;

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use ipc::proto::net::{Configured, Counters, Interface as Report, NetError};
use smoltcp::iface::{
    Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet,
};
use smoltcp::time::Instant;
use smoltcp::wire::Ipv4Cidr;

use crate::device::Nic;
use crate::settings::Settings;
pub use datagrams::{SOCKETS_MAX, Sending, SocketId};
pub use echo::{ECHOES_MAX, EchoId};
pub use queue::DATAGRAMS_MAX;
pub use waiting::WAITING_MAX;

use datagrams::Endpoint;
use echo::Echoes;
use frame::Notice;
use gate::Gate;
use waiting::Waiting;

/// Frames that one poll takes from the device at most, so that callers are served between them: no more than one socket has room
/// for, so that a program which keeps up loses nothing.
const FRAMES_MAX: usize = DATAGRAMS_MAX;
/// How long the device may have no room for a frame, in nanoseconds, until nobody waits for it any longer.
const STALL: u64 = 3_000_000_000;

/// The network.
pub struct Stack<D: Nic> {
    interface: Interface,
    gate: Gate<D>,
    sockets: SocketSet<'static>,
    /// The socket that asks for an address, if it is to be lent.
    dhcp: Option<SocketHandle>,
    configured: Configured,
    /// When a DHCP server is asked again, if the last one lent what no host can have; in nanoseconds since boot.
    ask_again: Option<u64>,
    gateway: Option<Ipv4Addr>,
    endpoints: Vec<Option<Endpoint>>,
    /// The next port to try for who does not mind.
    next_port: u16,
    echoes: Echoes,
    waiting: Waiting,
    /// The last poll left frames in the device.
    has_more: bool,
}

/// smoltcp's time.
fn instant(now: u64) -> Instant {
    Instant::from_micros((now / 1000) as i64)
}

impl<D: Nic> Stack<D> {
    /// A network on this device. `seed` is to be different each time.
    pub fn new(nic: D, settings: Settings, seed: u64, now: u64) -> Self {
        let mut gate = Gate::new(nic);
        let mut config = Config::new(gate.addresses.mac.into());
        config.random_seed = seed;
        let interface = Interface::new(config, &mut gate, instant(now));
        let mut sockets = SocketSet::new(Vec::new());
        let echoes = Echoes::new(&mut sockets, seed);
        let mut stack = Self {
            interface,
            gate,
            sockets,
            dhcp: None,
            configured: Configured::Wrong,
            ask_again: None,
            gateway: None,
            endpoints: Vec::new(),
            next_port: 0x8000 | seed as u16,
            echoes,
            waiting: Waiting::default(),
            has_more: true,
        };
        stack.gate.addresses.identifier = stack.echoes.identifier;
        stack.configure(settings);
        stack
    }

    /// The device.
    pub const fn nic(&mut self) -> &mut D {
        self.gate.nic()
    }

    /// Takes what has arrived, and sends what can go.
    pub fn poll(&mut self, now: u64) {
        self.has_more = false;
        let mut retries = self.gate.has_room_again(now);
        for frame in 0.. {
            if frame == FRAMES_MAX {
                self.has_more = true;
                break;
            }
            let taken =
                self.interface
                    .poll_ingress_single(instant(now), &mut self.gate, &mut self.sockets);
            match taken {
                PollIngressSingleResult::None => break,
                PollIngressSingleResult::PacketProcessed => {}
                PollIngressSingleResult::SocketStateChanged => {
                    retries |= self.gate.notice == Some(Notice::Arp);
                    self.take_in(now);
                }
            }
        }
        self.renew_lease(now);
        self.egress(now);
        self.send_waiting(retries, now);
        if let Some(error) = self.outage(now) {
            self.abandon_waiting(error);
        }
        if self.has_failed() {
            self.echoes.end_all(NetError::DeviceFailed);
        }
        self.end_echoes(now);
    }

    /// Whether the device does not work any more.
    pub fn has_failed(&mut self) -> bool {
        self.gate.nic().has_failed()
    }

    /// Why nothing can be sent, if that is the device's fault.
    fn outage(&mut self, now: u64) -> Option<NetError> {
        if self.has_failed() {
            return Some(NetError::DeviceFailed);
        }
        let end = self.gate.full_since?.saturating_add(STALL);
        (now >= end).then_some(NetError::DeviceStalled)
    }

    /// Whom a frame that was taken is for.
    fn take_in(&mut self, now: u64) {
        match self.gate.notice.take() {
            Some(Notice::Datagram(port)) => self.queue_datagram(port),
            Some(Notice::PortUnreachable(port)) => self.count_refused(port),
            Some(Notice::EchoUnreachable(identifier, sequence)) => {
                self.echoes.unreachable(identifier, sequence);
            }
            Some(Notice::Arp | Notice::NoPort) => {}
            None => self.take_echoes(now),
        }
    }

    /// Lets smoltcp's sockets send; whether one did.
    fn egress(&mut self, now: u64) -> bool {
        let result = self
            .interface
            .poll_egress(instant(now), &mut self.gate, &mut self.sockets);
        result == PollResult::SocketStateChanged
    }

    /// When to poll at the latest, in nanoseconds since boot; `None`: when the device says so.
    pub fn deadline(&mut self, now: u64) -> Option<u64> {
        if self.has_failed() {
            return None;
        }
        if self.has_more {
            return Some(now);
        }
        let echoes = self.echoes.deadline();
        if let Some(since) = self.gate.full_since {
            // Nothing else is due but what the device had no room for, which it says when it has; or it says nothing.
            let stall = Some(since.saturating_add(STALL)).filter(|end| now < *end);
            return [echoes, stall].into_iter().flatten().min();
        }
        let stack = self.interface.poll_at(instant(now), &self.sockets);
        let stack = stack.map(|at| (at.total_micros().max(0) as u64).saturating_mul(1000));
        let others = [echoes, self.waiting.deadline(), self.ask_again];
        others.into_iter().flatten().chain(stack).min()
    }

    /// The address and its network.
    fn address(&self) -> Option<Ipv4Cidr> {
        self.gate.addresses.own
    }

    /// What the network is.
    pub fn report(&mut self) -> Report {
        let address = self.address();
        Report {
            mac: self.gate.addresses.mac.0,
            link: self.gate.nic().link(),
            address: address.map(|own| (own.address().into(), own.prefix_len())),
            gateway: self.gateway.map(Into::into),
            configured: self.configured,
            sockets: self.endpoints.iter().flatten().count() as u16,
        }
    }

    /// What went over it.
    pub fn counters(&mut self) -> Counters {
        let device = self.gate.nic().counters();
        Counters {
            received: self.gate.received.frames,
            received_bytes: self.gate.received.bytes,
            sent: self.gate.sent.frames,
            sent_bytes: self.gate.sent.bytes,
            interrupts: device.interrupts,
            device_errors: device.errors,
            drops: self.gate.drops,
        }
    }
}
