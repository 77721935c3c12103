//! The system calls that carry a message: its tag and words in registers, its payload and handles in the IPC buffer
//! ([`crate::buffer`]).

use ipc::abi::message::WORDS;
use ipc::abi::syscall::Register;
use ipc::abi::{Error, Handle, Syscall, Tag};

use super::{Returned, enter};

/// The words of a message that travel in registers.
pub type Words = [u64; WORDS];
/// What a message without words sends in their place, so that nothing else of the sender is seen.
pub const NO_WORDS: Words = [0; WORDS];

/// What a reply or a receive brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The badge, or the bits.
    pub badge: u64,
    /// Operation or status, length of the payload, count of handles.
    pub tag: Tag,
    /// Of a receive: an [`ipc::abi::Delivery`].
    pub delivery: u64,
    /// The words.
    pub words: Words,
}

impl Received {
    fn new(returned: &Returned) -> Result<Self, Error> {
        returned.check()?;
        Ok(Self {
            badge: returned.result(0)?,
            tag: returned.result(1)?,
            delivery: returned.result(2)?,
            words: returned.words,
        })
    }
}

/// Sends a message to an endpoint, and waits for the reply until the deadline, in nanoseconds since boot.
///
/// # Errors
/// As `docs/abi.md` says.
#[inline]
pub fn call(endpoint: Handle, tag: Tag, words: Words, deadline: u64) -> Result<Received, Error> {
    let first = [endpoint.to_raw(), tag.raw(), deadline];
    Received::new(&enter(Syscall::call as u64, first, words))
}

/// Drops the call served, if any, then waits for a call, for bits or for a closed badge until the deadline.
///
/// # Errors
/// As `docs/abi.md` says.
#[inline]
pub fn receive(endpoint: Handle, deadline: u64) -> Result<Received, Error> {
    let first = [endpoint.to_raw(), deadline, 0];
    Received::new(&enter(Syscall::receive as u64, first, NO_WORDS))
}

/// Answers the call served.
///
/// # Errors
/// As `docs/abi.md` says.
#[inline]
pub fn reply(tag: Tag, words: Words) -> Result<(), Error> {
    enter(Syscall::reply as u64, [tag.raw(), 0, 0], words).check()
}

/// Answers the call served, then receives.
///
/// # Errors
/// As `docs/abi.md` says.
#[inline]
pub fn reply_receive(
    endpoint: Handle,
    tag: Tag,
    words: Words,
    deadline: u64,
) -> Result<Received, Error> {
    let first = [endpoint.to_raw(), tag.raw(), deadline];
    Received::new(&enter(Syscall::reply_receive as u64, first, words))
}
