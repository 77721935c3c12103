//! The remote shell's protocol over UDP, for both of its ends: the net server's and the host client's.
//!
//! Nothing here touches a socket or a clock: datagrams, time and random bytes are passed in, so that both ends and a link
//! that loses, doubles, reorders and corrupts run in one host test. From the outside in:
//!
//! | layer | file | what it does |
//! |---|---|---|
//! | packet | `packet.rs` | what begins each datagram: version, kind, mode, session, number |
//! | hello | `hello.rs` | proves the peer's address and, with a key, both ends; agrees on keys of the session's own |
//! | seal | `seal.rs`, `noise.rs` | encrypts and authenticates a frame, or (`open`) guards it against damage; refuses replays |
//! | frame | `frame.rs` | an acknowledgement and at most one chunk of a message |
//! | channel | `channel/` | messages cut into chunks: each arrives, in order, once |
//! | control | `control.rs` | what the ends tell each other beside the bytes of the terminal |
//!
//! [`Client`] and [`Server`] put them together. `docs/remote-shell.md` has the format and the reasons.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod bytes;
mod channel;
mod client;
mod control;
mod frame;
mod hello;
mod key;
mod noise;
mod packet;
mod replay;
mod seal;
mod server;
#[cfg(test)]
mod tests;
mod time;

use alloc::boxed::Box;

pub use client::{Client, Event as ClientEvent, Mode};
pub use control::{Command, CommandError, End, Purpose};
pub use frame::Stream;
pub use hello::Refusal;
pub use ipc::proto::remote::{Role, Statistics, Status};
pub use key::{KEYS_MAX, Key, KeyError, KeyRing, LineError};
pub use packet::{DATAGRAM_MAX, VERSION};
pub use server::{Event as ServerEvent, Mode as ServerMode, SESSIONS_MAX, Server};
pub use time::Instant;

/// The UDP port at which a remote shell is looked for, unless another is said.
pub const PORT: u16 = 5555;

/// Fills a slice with random bytes that nobody else can know. Both ends take their session keys from it.
pub type Random = Box<dyn FnMut(&mut [u8]) + Send>;
