//! Where datagrams are between a program and the net server: slots of a memory object that both have mapped.
//!
//! A slot is one word that says address, port and length, and then the bytes. Either side may change a slot at any time; who reads
//! one believes nothing of it, and takes the word once.

use core::net::{Ipv4Addr, SocketAddrV4};

use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

/// Bytes of a slot; the second is behind the first.
pub const SLOT_BYTES: usize = 2048;
/// Most slots of a socket.
pub const SLOTS_MAX: u16 = 128;
/// Most bytes in a datagram: an Ethernet frame's 1500 without the headers of IPv4 and UDP. There are no fragments.
pub const DATAGRAM_MAX: u16 = 1472;

/// Where the bytes begin in a slot: behind its word.
const BYTES_AT: usize = size_of::<u64>();

const _: () = assert!(BYTES_AT + DATAGRAM_MAX as usize <= SLOT_BYTES);

/// Consecutive slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Slots {
    /// The first.
    pub first: u16,
    /// How many; at least one.
    pub count: u16,
}

impl Slots {
    /// Whether there is one at least, and none beyond the `all` that a socket has.
    #[must_use]
    pub fn fits(self, all: u16) -> bool {
        let end = self.first.checked_add(self.count);
        self.count > 0 && end.is_some_and(|end| end <= all)
    }

    /// Where the bytes of slot `index` are, and the word before them, as offsets from the object's beginning.
    #[must_use]
    pub const fn place(index: u16) -> (usize, usize) {
        let word = index as usize * SLOT_BYTES;
        (word, word + BYTES_AT)
    }

    /// Pages that so many slots take.
    #[must_use]
    pub const fn pages(count: u16) -> u64 {
        let bytes = count as u64 * SLOT_BYTES as u64;
        bytes.div_ceil(crate::abi::layout::PAGE_SIZE)
    }
}

/// The word of a slot: whom the datagram goes to, or who sent it, and how many bytes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The other end.
    pub peer: SocketAddrV4,
    /// Bytes.
    pub len: u16,
}

impl Header {
    /// As a word: address, port and length, from the highest bit down.
    #[must_use]
    pub fn to_word(self) -> u64 {
        let address = u64::from(self.peer.ip().to_bits());
        address << 32 | u64::from(self.peer.port()) << 16 | u64::from(self.len)
    }

    /// From a word.
    #[must_use]
    pub fn from_word(word: u64) -> Self {
        let address = Ipv4Addr::from_bits((word >> 32) as u32);
        Self {
            peer: SocketAddrV4::new(address, (word >> 16) as u16),
            len: word as u16,
        }
    }
}
