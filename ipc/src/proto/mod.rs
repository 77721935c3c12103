//! Protocols between programs, and the form of their configuration. The kernel knows none of it: it carries a tag, bytes and
//! handles.
//!
//! A protocol is one file here, declared with [`protocol!`](crate::protocol): operation numbers travel in the tag, so that
//! time in IPC can be attributed without decoding; postcard carries the arguments; bulk data goes by memory object. One
//! test in each file pins the bytes of every message.

pub mod bounded;
mod counters;
pub mod init;
mod kernel_error;
pub mod loopback;
pub mod message;
pub mod net;
pub mod operation;
pub mod pci;
pub mod profd;
pub mod protocol;
pub mod remote;
pub mod stream;
pub mod system;

pub use bounded::{Bytes, Text, TooLong};
pub use loopback::{Desk, Loopback};
pub use message::{BadPayload, HandleSet, Message};
pub use operation::{
    Call, CallError, Disposition, Operation, Outcome, Parked, ProtocolError, Responder, Served,
    Transport, call, fits, misunderstood, serve,
};
