//! The messages of the net server: what the network is, an echo asked of a host, and UDP sockets.
//!
//! Datagrams never travel in messages: a socket comes with a memory object of [slots](Slots), which its owner fills and reads and
//! the server copies from and to. A call says which slots, so that one call moves a batch. A socket is a handle of its own; it
//! ends when the last program that has the handle is gone or closes it.

use core::fmt;
use core::net::Ipv4Addr;

use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

use super::remote;

mod report;
mod slot;
#[cfg(test)]
mod tests;

pub use report::{Configured, Counters, Drops, Interface, Link, SocketInfo, SocketStatistics};
pub use slot::{DATAGRAM_MAX, Header, SLOT_BYTES, SLOTS_MAX, Slots};

/// Longest time that an echo can be waited for, in milliseconds.
pub const PING_MS_MAX: u32 = 60_000;
/// Most bytes of an echo request behind its ICMP header.
pub const PING_BYTES_MAX: u16 = DATAGRAM_MAX;

/// An IPv4 address, first byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, MaxSize)]
pub struct Address(pub [u8; 4]);

impl From<Ipv4Addr> for Address {
    fn from(address: Ipv4Addr) -> Self {
        Self(address.octets())
    }
}

impl From<Address> for Ipv4Addr {
    fn from(Address(octets): Address) -> Self {
        Self::from(octets)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv4Addr::from(*self).fmt(f)
    }
}

/// An echo to be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Ping {
    /// Of whom.
    pub host: Address,
    /// Longest wait for the answer, in milliseconds; at most [`PING_MS_MAX`].
    pub timeout_ms: u32,
    /// Bytes behind the ICMP header; at most [`PING_BYTES_MAX`].
    pub bytes: u16,
}

/// The answer to an echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Pong {
    /// From when the request was handed to the device to when the answer was taken from it, in nanoseconds.
    pub ns: u64,
}

/// Slots of which some hold datagrams to be sent, and others take what is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Exchange {
    /// To be sent.
    pub send: Slots,
    /// To be filled.
    pub receive: Slots,
}

/// What came of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Exchanged {
    /// Slots whose datagrams were taken, from the first on.
    pub sent: u16,
    /// Slots that were filled, from the first on. None if not all was sent, or if what was sent cannot be waited for.
    pub received: u16,
}

/// Why the net server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum NetError {
    /// The machine has no network device that the server can drive.
    NoDevice,
    /// Another socket is bound to this port.
    PortTaken,
    /// More bytes than a datagram can have.
    TooLarge,
    /// There is no way to this address: the machine has none itself, or no gateway, or nobody on the link answers for it.
    Unreachable,
    /// Nobody answered in time.
    Timeout,
    /// The socket has no port yet.
    NotBound,
    /// The socket has a port already.
    Bound,
    /// This program has as many sockets, or as many echoes under way, as it can have.
    Quota,
    /// All programs together have as many as there can be.
    Busy,
    /// Slots that the socket does not have, a memory object that is too small, or a time or an address that cannot be.
    BadArgument,
    /// The operation is one of a socket, and the handle is none, or that of a socket of an earlier server; or the other way round.
    NotASocket,
    /// The device has failed: nothing comes or goes until the net server is started again.
    DeviceFailed,
    /// The device has sent nothing for seconds, and has no room. It may again.
    DeviceStalled,
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDevice => f.write_str("no network device"),
            Self::PortTaken => f.write_str("the port is taken"),
            Self::TooLarge => write!(f, "a datagram has at most {DATAGRAM_MAX} bytes"),
            Self::Unreachable => f.write_str("unreachable"),
            Self::Timeout => f.write_str("no answer"),
            Self::NotBound => f.write_str("the socket has no port yet"),
            Self::Bound => f.write_str("the socket has a port already"),
            Self::Quota => f.write_str("the program has as many as it can have"),
            Self::Busy => f.write_str("all are in use"),
            Self::BadArgument => f.write_str("a number or an address that cannot be"),
            Self::NotASocket => {
                f.write_str("no socket of the net server, which may have been started again")
            }
            Self::DeviceFailed => f.write_str("the network device has failed"),
            Self::DeviceStalled => f.write_str("the network device sends nothing"),
        }
    }
}

impl core::error::Error for NetError {}

crate::protocol! {
    error NetError;
    /// Says what the network is, and counts.
    1 Status = status(()) -> Interface;
    /// Counts of what was received and sent, and of what was dropped by reason.
    2 Count = count(()) -> Counters;
    /// Asks a host for an echo. Parked until it is there, or the time is over.
    3 Echo = ping(Ping) -> Pong;
    /// Makes a socket whose slots are this many, in the memory object from its beginning on. The operations from 8 on are made
    /// through the handle that is answered.
    4 MakeSocket = socket(u16, handles [H; 1]) -> (), handles [H; 1];
    /// Gives the first socket whose place is at least this; none if there is none.
    5 NextSocket = next_socket(u16) -> Option<SocketInfo>;
    /// Counts of the remote shell; none while it is off.
    6 Remote = remote(()) -> Option<remote::Statistics>;
    /// Gives the socket a port, or any that is free for 0; answers which.
    8 Bind = bind(u16) -> u16;
    /// Sends the datagrams in these slots, in order; answers how many were taken, at least one: what cannot be sent ends the
    /// batch, and is the error if it is the first. Parked while the device has no room, for some seconds at most.
    9 Send = send(Slots) -> u16;
    /// Fills slots with datagrams that were received, in order; answers how many, at least one. Parked until there is one, or the
    /// device fails.
    10 Receive = receive(Slots) -> u16;
    /// Sends, and receives if all was sent: one call for each batch of who answers datagrams.
    11 Swap = exchange(Exchange) -> Exchanged;
    /// What the socket did.
    12 Statistics = statistics(()) -> SocketStatistics;
}
