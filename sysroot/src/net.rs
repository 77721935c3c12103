//! UDP sockets, over the net server: named as in `std::net`, but for the slots, by which a call moves a batch.
//!
//! ```ignore
//! let mut socket = UdpSocket::bind(7)?;
//! let mut bytes = [0; 1472];
//! loop {
//!     let (len, from) = socket.recv_from(&mut bytes)?;
//!     socket.send_to(&bytes[..len], from)?;
//! }
//! ```

use core::net::SocketAddrV4;

use ipc::abi::Error as KernelError;
use ipc::proto::CallError;
use ipc::proto::net::{
    Client, DATAGRAM_MAX, Exchange, Exchanged, Header, NetError, SLOTS_MAX, Slots, SocketStatistics,
};

use crate::{Connection, Mapping, OwnedHandle};

/// Why a socket does not do what was asked of it: the kernel or the net server refused.
pub type Error = CallError<NetError>;

/// Slots of a socket: the first one for what [`UdpSocket::send_to`] sends, the others for what is received.
const SLOTS: u16 = 33;
const SEND: Slots = Slots { first: 0, count: 1 };
const RECEIVE: Slots = Slots {
    first: 1,
    count: SLOTS - 1,
};

const _: () = assert!(SLOTS <= SLOTS_MAX);

/// A UDP socket. It ends when it is dropped.
#[derive(Debug)]
pub struct UdpSocket {
    client: Client<Connection>,
    port: u16,
    slots: Mapping,
    /// Slots with datagrams that were received and that nobody has asked for yet.
    ready: Slots,
    /// What the client's calls go through.
    handle: OwnedHandle,
}

impl UdpSocket {
    /// A socket with this port of the machine; any that is free for 0.
    ///
    /// # Errors
    /// The kernel's, `NotFound` if this program may not call the net server; that the port is taken, or a limit reached.
    pub fn bind(port: u16) -> Result<Self, Error> {
        let net = Connection::named("net").ok_or(CallError::Transport(KernelError::NotFound))?;
        let (memory, slots) = Mapping::create(Slots::pages(SLOTS)).map_err(CallError::Transport)?;
        let ((), [handle]) = Client::new(net).socket(&SLOTS, [memory])?;
        let mut client = Client::new(Connection::new(handle.raw()));
        Ok(Self {
            port: client.bind(&port)?,
            client,
            slots,
            ready: Slots::default(),
            handle,
        })
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Gives each call at most so many nanoseconds from now on; `None`: no limit. One that is late fails with `TimedOut`.
    pub fn set_timeout(&mut self, nanoseconds: Option<u64>) {
        let connection = Connection::new(self.handle.raw());
        *self.client.transport() = match nanoseconds {
            Some(nanoseconds) => connection.timeout(nanoseconds),
            None => connection,
        };
    }

    /// Sends a datagram. That it was sent does not say that it arrives.
    ///
    /// # Errors
    /// `TooLarge`, `Unreachable`, `BadArgument` for an address that is not one host's; else the kernel's.
    pub fn send_to(&mut self, bytes: &[u8], to: SocketAddrV4) -> Result<(), Error> {
        let len = u16::try_from(bytes.len()).ok();
        let len = len.filter(|len| *len <= DATAGRAM_MAX);
        let len = len.ok_or(CallError::Service(NetError::TooLarge))?;
        self.put(0, Header { peer: to, len }, bytes);
        self.client.send(&SEND).map(drop)
    }

    /// Waits for a datagram; how many bytes it has, and whose it is. Of one that is longer than `bytes` the rest is lost.
    ///
    /// # Errors
    /// The kernel's, `TimedOut` among them.
    pub fn recv_from(&mut self, bytes: &mut [u8]) -> Result<(usize, SocketAddrV4), Error> {
        if self.ready.count == 0 {
            let count = self.client.receive(&RECEIVE)?;
            self.ready = Slots { count, ..RECEIVE };
        }
        let index = self.ready.first;
        self.ready.first += 1;
        self.ready.count -= 1;
        let Header { peer, len } = self.header(index);
        let len = bytes.len().min(len.into());
        self.get(index, &mut bytes[..len]);
        Ok((len, peer))
    }

    /// What it did.
    ///
    /// # Errors
    /// The kernel's.
    pub fn statistics(&mut self) -> Result<SocketStatistics, Error> {
        self.client.statistics(&())
    }

    /// Number of its slots: those that the calls from here on take.
    #[must_use]
    pub const fn slots(&self) -> u16 {
        SLOTS
    }

    /// Whom the datagram in a slot is from or for, and its length.
    #[must_use]
    pub fn header(&self, index: u16) -> Header {
        let mut word = [0; size_of::<u64>()];
        self.slots.read(Slots::place(index).0, &mut word);
        Header::from_word(u64::from_le_bytes(word))
    }

    /// Copies the first bytes of a slot's datagram.
    pub fn get(&self, index: u16, bytes: &mut [u8]) {
        self.slots.read(Slots::place(index).1, bytes);
    }

    /// Puts a datagram into a slot: its header, and as many of its bytes as are to be changed.
    pub fn put(&self, index: u16, header: Header, bytes: &[u8]) {
        let (word, place) = Slots::place(index);
        self.slots.write(word, &header.to_word().to_le_bytes());
        self.slots.write(place, bytes);
    }

    /// Sends the datagrams of slots; how many were taken, one at least.
    ///
    /// # Errors
    /// Why the first was not, as for [`Self::send_to`].
    pub fn send(&mut self, slots: Slots) -> Result<u16, Error> {
        self.client.send(&slots)
    }

    /// Waits for datagrams, and puts them into slots; how many, one at least.
    ///
    /// # Errors
    /// The kernel's.
    pub fn receive(&mut self, slots: Slots) -> Result<u16, Error> {
        self.client.receive(&slots)
    }

    /// Sends, and if all was sent, receives, in one call.
    ///
    /// # Errors
    /// As for [`Self::send`] and [`Self::receive`].
    pub fn exchange(&mut self, send: Slots, receive: Slots) -> Result<Exchanged, Error> {
        self.client.exchange(&Exchange { send, receive })
    }
}
