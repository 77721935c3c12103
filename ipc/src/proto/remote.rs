//! Sessions that come from elsewhere: what the server that has them says to the shell, which runs them.
//!
//! The shell accepts a session through the endpoint `remote` and gets a handle of its own for it. That handle is the session:
//! it carries what is typed and shown as [`stream`], and answers [`Describe`] and [`Finish`]; whoever holds
//! it may, and nobody else. When the last copy of it is closed the session is over, so one that nobody took up ends at
//! once, and one whose program has died does too. A session that the other side has left answers reads and writes with
//! [`StreamError::Closed`](stream::StreamError::Closed), and so does one whose server was started again. Its holder may
//! outlive that server, whose endpoint stays the same: so a server uses no badge that an earlier instance may have used, and
//! begins, for one, with the time.
//!
//! The numbers of both protocols differ, so that one endpoint serves them ([`serve`]).

mod statistics;

use core::fmt;

use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

use super::{Disposition, Message, Responder, Text, stream};
pub use statistics::Statistics;

/// Longest command of a session that runs one, in bytes.
pub const COMMAND_MAX: usize = 1024;

/// What a session may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, MaxSize)]
pub enum Role {
    /// Look.
    Observe,
    /// Everything.
    Control,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Observe => "observe",
            Self::Control => "control",
        })
    }
}

/// What a session is for.
#[expect(
    clippy::large_enum_variant,
    reason = "it is decoded once, where it is used, without a heap"
)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum Purpose {
    /// Somebody at a terminal: lines are edited and echoed; output is text with CR LF and escape sequences.
    Shell,
    /// This one command: its output as it is, no echo, no prompt, no pages. What is typed counts only as Ctrl-C, byte 3.
    Exec(Text<COMMAND_MAX>),
}

/// Where a session comes from, in IPv4 and UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Peer {
    /// Address, in the order in which it is written.
    pub address: [u8; 4],
    /// Port.
    pub port: u16,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            address: [a, b, c, d],
            port,
        } = self;
        write!(f, "{a}.{b}.{c}.{d}:{port}")
    }
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Opened {
    /// Its number, which no other session gets while this server runs.
    pub number: u32,
    /// What it may do.
    pub role: Role,
    /// What it is for.
    pub purpose: Purpose,
    /// Where it comes from.
    pub peer: Peer,
}

/// How the command of a session ended. The other side is told this as one byte: its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
#[repr(u8)]
pub enum Status {
    /// It did what it was to do.
    Success = 0,
    /// It could not be done: unknown, refused, wrong arguments, or a program that did not end well.
    Failed = 1,
    /// Ctrl-C ended it.
    Interrupted = 2,
}

impl Status {
    /// The status of this number; `None` if there is none.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Success),
            1 => Some(Self::Failed),
            2 => Some(Self::Interrupted),
            _ => None,
        }
    }
}

/// Why the server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum RemoteError {
    /// Another call took the place of this one, or the kernel has no room for it; try again later.
    Busy,
    /// This operation is not for this handle: `accept` is for the endpoint, the others for a session's.
    NotYours,
    /// The session is over.
    Over,
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "another call waits for sessions",
            Self::NotYours => "this handle is not for that",
            Self::Over => "the session is over",
        })
    }
}

impl core::error::Error for RemoteError {}

crate::protocol! {
    error RemoteError;
    /// Gives the next session that was opened: a handle with CALL, DUPLICATE and TRANSFER and a badge of its own. Parked until
    /// there is one, which is for ever where the remote shell is off. One call is kept: another takes its place, as that of a
    /// shell that was started again does, and it is refused as busy. A caller that has died cannot be answered: the
    /// session waits for the next.
    16 Accept = accept(()) -> (), handles [H; 1];
    /// Tells what the session is.
    17 Describe = describe(()) -> Opened;
    /// Ends the session: the other side gets what was written before, and then this. A flush behind it is answered once it has.
    18 Finish = finish(Status) -> ();
}

/// Serves one call through the endpoint or through a session's handle.
pub fn serve<S, P>(
    service: &mut S,
    responder: &mut P,
    badge: u64,
    message: &mut Message<P::Handle>,
) -> Disposition
where
    S: Service<P> + stream::Service<P>,
    P: Responder,
{
    if stream::OPERATIONS
        .iter()
        .any(|&(number, _)| number == message.op)
    {
        stream::dispatch(service, responder, badge, message)
    } else {
        dispatch(service, responder, badge, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
        let mut buffer = [0; 64];
        postcard::to_slice(value, &mut buffer).unwrap().to_vec()
    }

    #[test]
    fn wire_bytes_are_pinned() {
        let peer = Peer {
            address: [10, 0, 2, 2],
            port: 300,
        };
        let opened = |role, purpose| Opened {
            number: 300,
            role,
            purpose,
            peer,
        };
        assert_eq!(
            bytes(&opened(Role::Control, Purpose::Shell)),
            [0xac, 2, 1, 0, 10, 0, 2, 2, 0xac, 2]
        );
        assert_eq!(
            bytes(&opened(Role::Observe, Purpose::Exec(Text::cut("ps")))),
            [0xac, 2, 0, 1, 2, b'p', b's', 10, 0, 2, 2, 0xac, 2]
        );
        let statuses = [Status::Success, Status::Failed, Status::Interrupted];
        assert_eq!(statuses.map(|status| bytes(&status)), [[0], [1], [2]]);
        assert_eq!([0, 1, 2].map(Status::from_number), statuses.map(Some));
        assert_eq!(statuses.map(|status| status as u8), [0, 1, 2]);
        assert_eq!(Status::from_number(3), None);
        let errors = [RemoteError::Busy, RemoteError::NotYours, RemoteError::Over];
        assert_eq!(errors.map(|error| bytes(&error)), [[0], [1], [2]]);
        assert_eq!(
            OPERATIONS,
            [(16, "accept"), (17, "describe"), (18, "finish")]
        );
    }

    #[test]
    fn each_count_has_its_name_and_its_place() {
        let statistics = Statistics {
            opened: 1,
            unauthenticated: 300,
            unsent: 2,
            ..Statistics::default()
        };
        assert_eq!(
            bytes(&statistics),
            [1, 0, 0, 0, 0, 0xac, 2, 0, 0, 0, 0, 0, 0, 0, 0, 2]
        );
        let counted: Vec<_> = statistics.each().filter(|(_, count)| *count > 0).collect();
        assert_eq!(
            counted,
            [
                ("sessions opened", 1),
                ("by no key of this machine", 300),
                ("too many answers wait", 2)
            ]
        );
    }

    #[test]
    fn the_two_protocols_share_no_number() {
        let shared = |number| stream::OPERATIONS.iter().any(|&(other, _)| other == number);
        assert!(OPERATIONS.iter().all(|&(number, _)| !shared(number)));
    }

    #[test]
    fn a_peer_is_shown_as_it_is_typed() {
        let peer = Peer {
            address: [10, 0, 2, 2],
            port: 5555,
        };
        assert_eq!(peer.to_string(), "10.0.2.2:5555");
    }
}
