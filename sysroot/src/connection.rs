//! The client side of a protocol, over system calls.

use ipc::abi::{Error, Handle, NEVER, Tag};
use ipc::proto::{Message, Transport};

use crate::syscall::message::{self, NO_WORDS};
use crate::{OwnedHandle, buffer, startup, time};

/// A server that can be called: `profd::Client::new(Connection::new(endpoint))`.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    endpoint: Handle,
    timeout: Option<u64>,
}

impl Connection {
    /// A connection through an endpoint handle with CALL. It waits for replies without limit.
    #[must_use]
    pub const fn new(endpoint: Handle) -> Self {
        Self {
            endpoint,
            timeout: None,
        }
    }

    /// A connection to the server whose endpoint this program was given under `name`; `None` if it was not.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        startup::handle(name).map(Self::new)
    }

    /// Gives each call at most so many nanoseconds.
    #[must_use]
    pub const fn timeout(mut self, nanoseconds: u64) -> Self {
        self.timeout = Some(nanoseconds);
        self
    }
}

impl Transport for Connection {
    type Handle = OwnedHandle;

    fn call(&mut self, message: &mut Message<OwnedHandle>) -> Result<(), Error> {
        let deadline = self.timeout.map_or(NEVER, time::after);
        buffer::put(message);
        let tag = Tag::new(message.op, message.bytes.len(), message.handles.len());
        let reply = message::call(self.endpoint, tag, NO_WORDS, deadline);
        let handles = core::mem::take(&mut message.handles);
        // If the call failed, dropping closes them: those that the server took nevertheless name nothing here any more.
        let tag = reply?.tag;
        // The kernel moved them: they are no longer this program's to close.
        for handle in handles {
            let _ = handle.into_raw();
        }
        buffer::take(tag, message)
    }
}
