//! What the net server tells of itself: the interface, and a count for everything that it received, sent or dropped.

use core::fmt;

use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

use super::Address;
use crate::proto::counters::counters;

/// What the device says of its cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum Link {
    /// Frames pass.
    Up,
    /// None do.
    Down,
    /// The device does not work any more: it did what no device may do.
    Failed,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Failed => "failed",
        })
    }
}

/// Where the address is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum Configured {
    /// `ip=` on the boot command line.
    CommandLine,
    /// A DHCP server, which lent it.
    Dhcp,
    /// No DHCP server has answered yet.
    Asking,
    /// The command line is wrong: there is no address.
    Wrong,
}

impl fmt::Display for Configured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CommandLine => "from the command line",
            Self::Dhcp => "by DHCP",
            Self::Asking => "no DHCP server has lent one",
            Self::Wrong => "the command line is wrong",
        })
    }
}

/// The network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Interface {
    /// Ethernet address.
    pub mac: [u8; 6],
    /// State of the link.
    pub link: Link,
    /// Address, if it has one, and how many leading bits of it are the network's.
    pub address: Option<(Address, u8)>,
    /// The gateway, if there is one.
    pub gateway: Option<Address>,
    /// Where the address is from, or why there is none.
    pub configured: Configured,
    /// UDP sockets that there are.
    pub sockets: u16,
}

/// What went over the interface since the server started. Frames and bytes are those of Ethernet without the check sequence, which
/// devices keep to themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Counters {
    /// Frames that the device delivered.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames handed to the device.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Interrupts of the device.
    pub interrupts: u64,
    /// Mistakes of the device: buffers that it was not given, lengths that cannot be.
    pub device_errors: u64,
    /// Received, but not passed on; and what could not be sent.
    pub drops: Drops,
}

counters! {
    /// What was dropped, by reason.
    Drops
    /// Frames too short for what their headers promise, or with headers that cannot be.
    malformed => "malformed";
    /// Frames whose checksum of IPv4, ICMP or UDP is wrong.
    checksum => "wrong checksum";
    /// Frames that are neither ARP nor IPv4, datagrams that are neither ICMP nor UDP, and ICMP of other kinds than echo and unreachable.
    protocol => "other protocol";
    /// Frames and datagrams for somebody else.
    elsewhere => "for another host";
    /// Pieces of a datagram: nothing is put together here.
    fragment => "fragment";
    /// UDP datagrams to a port that nobody has.
    no_port => "port without socket";
    /// UDP datagrams whose socket has no room left: its program reads too slowly.
    queue_full => "socket full";
    /// Datagrams and echo requests to be sent for which nobody on the link answered ARP.
    unanswered => "no answer to ARP";
    /// Datagrams to be sent that would have waited for an answer to ARP with too many others.
    waiting_full => "too many wait for ARP";
    /// Datagrams and echo requests to be sent that waited when the device failed or stalled.
    device => "device failed or stalled";
    /// Answers to echo requests that nobody made, or no longer waits for.
    unasked => "echo not asked for";
    /// Datagrams from an address that no host can have, as QEMU tells in the name of 127.0.0.1 that a port of its host is not there.
    source => "from no host's address";
}

/// What a socket did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct SocketStatistics {
    /// Datagrams that were put into slots.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Datagrams that were taken from slots.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Datagrams that came while there was no room for them.
    pub queue_full: u64,
    /// Datagrams that were taken and could not be sent, because nobody on the link answered for their address.
    pub unanswered: u64,
    /// Messages of other hosts that a datagram did not reach its port.
    pub refused: u64,
    /// Datagrams that could not be taken: too large, unreachable, for an address that is no host's, or by a device that has failed.
    pub failed: u64,
    /// Datagrams that were taken and dropped here: too many waited for ARP, or the device failed or stalled.
    pub dropped: u64,
}

/// A socket, as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct SocketInfo {
    /// Its place among the sockets.
    pub index: u16,
    /// Process id of its program.
    pub owner: u32,
    /// Its port, once it has one.
    pub port: Option<u16>,
    /// What it did.
    pub statistics: SocketStatistics,
}
