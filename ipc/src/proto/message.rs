//! A message outside the IPC buffer: operation, payload and handles, and how values get in and out of it.

use heapless::Vec;
use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::abi::message::{HANDLES_MAX, PAYLOAD_MAX};

/// A call or a reply. `H` is the platform's owned handle: one that is dropped closes.
#[derive(Debug)]
pub struct Message<H> {
    /// Operation of a call, or status of a reply.
    pub op: u16,
    /// Payload.
    pub bytes: Vec<u8, PAYLOAD_MAX>,
    /// Handles. Those in a message are always moved; to keep one, duplicate it before.
    pub handles: Vec<H, HANDLES_MAX>,
}

/// The bytes are not those of one value of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPayload;

impl<H> Message<H> {
    /// An empty message.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            op: 0,
            bytes: Vec::new(),
            handles: Vec::new(),
        }
    }

    /// Makes the message carry `value` and no handles.
    ///
    /// # Errors
    /// The value has more bytes than its type promised, or cannot be written at all.
    pub fn put<V: Serialize>(&mut self, op: u16, value: &V) -> Result<(), BadPayload> {
        self.op = op;
        self.bytes.clear();
        self.handles.clear();
        postcard::serialize_with_flavor(value, Payload(&mut self.bytes)).map_err(|_| BadPayload)
    }

    /// The value of the payload, which must be nothing else.
    ///
    /// # Errors
    /// The bytes are too few, too many, or say what the type cannot be.
    pub fn get<V: DeserializeOwned>(&self) -> Result<V, BadPayload> {
        match postcard::take_from_bytes(&self.bytes) {
            Ok((value, [])) => Ok(value),
            _ => Err(BadPayload),
        }
    }
}

impl<H> Default for Message<H> {
    fn default() -> Self {
        Self::new()
    }
}

/// Lets postcard append to the payload.
struct Payload<'a>(&'a mut Vec<u8, PAYLOAD_MAX>);

impl Flavor for Payload<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0
            .push(byte)
            .map_err(|_| postcard::Error::SerializeBufferFull)
    }
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0
            .extend_from_slice(bytes)
            .map_err(|_| postcard::Error::SerializeBufferFull)
    }
    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// The handles that one kind of message carries: `()`, `[H; N]`, or `Option<H>`.
pub trait HandleSet<H>: Sized {
    /// Most handles in it.
    const MAX: usize;
    /// From the handles of a message; `None` if their number is wrong.
    fn take(handles: &mut Vec<H, HANDLES_MAX>) -> Option<Self>;
    /// Into a message that has none.
    fn put(self, handles: &mut Vec<H, HANDLES_MAX>);
}

impl<H> HandleSet<H> for () {
    const MAX: usize = 0;

    fn take(handles: &mut Vec<H, HANDLES_MAX>) -> Option<Self> {
        handles.is_empty().then_some(())
    }
    fn put(self, _: &mut Vec<H, HANDLES_MAX>) {}
}

impl<H, const N: usize> HandleSet<H> for [H; N] {
    const MAX: usize = N;

    fn take(handles: &mut Vec<H, HANDLES_MAX>) -> Option<Self> {
        core::mem::take(handles).into_array().ok()
    }
    fn put(self, handles: &mut Vec<H, HANDLES_MAX>) {
        handles.extend(self);
    }
}

impl<H> HandleSet<H> for Option<H> {
    const MAX: usize = 1;

    fn take(handles: &mut Vec<H, HANDLES_MAX>) -> Option<Self> {
        if handles.len() > 1 {
            return None;
        }
        Some(handles.pop())
    }
    fn put(self, handles: &mut Vec<H, HANDLES_MAX>) {
        handles.extend(self);
    }
}
