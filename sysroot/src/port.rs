//! The server side of a protocol, over system calls: one thread's place at an endpoint.
//!
//! ```ignore
//! let mut port = Port::new(endpoint);
//! let mut message = Message::new();
//! loop {
//!     match port.receive(deadline, &mut message) {
//!         Event::Call { badge } => port.serve(badge, &mut message, &mut server, protocol::dispatch),
//!         Event::Notified(bits) => ..,
//!         Event::Closed { badge } => ..,
//!         Event::TimedOut => ..,
//!         Event::Failed(error) => ..,
//!     }
//! }
//! ```

use ipc::abi::startup::names;
use ipc::abi::{Delivery, Error, Handle, Tag};
use ipc::proto::{Disposition, Message, Responder};

use crate::syscall::message::{self, NO_WORDS, Received};
use crate::{OwnedHandle, buffer, startup, syscall};

/// Delivers a notification's bits in the receive of the program's first thread. For another thread, see `syscall::bind` and
/// [`JoinHandle::handle`](crate::thread::JoinHandle::handle).
///
/// # Errors
/// `Busy` if either is bound already, `NotFound` if the program was not given its thread; else see the call `bind`.
pub fn bind(notification: Handle) -> Result<(), Error> {
    let thread = startup::handle(names::THREAD).ok_or(Error::NotFound)?;
    syscall::bind(notification, thread)
}

/// What a receive brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A call, made through a handle with this badge. It fails its caller if it is neither answered nor parked before the
    /// next receive.
    Call {
        /// Badge of the handle.
        badge: u64,
    },
    /// Bits of the notification that is bound to the thread.
    Notified(u64),
    /// Nobody holds a handle with this badge any more.
    Closed {
        /// Badge.
        badge: u64,
    },
    /// The deadline passed.
    TimedOut,
    /// The kernel refused; nothing will be received here.
    Failed(Error),
}

/// What the thread owes the call that it received last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owes {
    /// Nothing: there was none, or it is parked.
    Nothing,
    /// An answer.
    Answer,
    /// The answer that is in the message: the next receive sends it.
    Sending,
}

/// One thread's place at an endpoint. A server with several threads has several, on the same endpoint.
#[derive(Debug)]
pub struct Port {
    endpoint: Handle,
    owes: Owes,
}

impl Port {
    /// A place at an endpoint, through a handle with RECEIVE; [`Handle::NONE`] receives bits alone.
    #[must_use]
    pub const fn new(endpoint: Handle) -> Self {
        Self {
            endpoint,
            owes: Owes::Nothing,
        }
    }

    /// Sends the answer in `message`, if one is due, and waits for what comes next, which takes its place.
    pub fn receive(&mut self, deadline: u64, message: &mut Message<OwnedHandle>) -> Event {
        let received = match core::mem::replace(&mut self.owes, Owes::Nothing) {
            Owes::Sending => self.reply_receive(deadline, message),
            Owes::Nothing | Owes::Answer => message::receive(self.endpoint, deadline),
        };
        let Received {
            badge,
            tag,
            delivery,
            ..
        } = match received {
            Ok(received) => received,
            Err(Error::TimedOut) => return Event::TimedOut,
            Err(error) => return Event::Failed(error),
        };
        match Delivery::from_raw(delivery) {
            Some(Delivery::Call) => {
                self.owes = Owes::Answer;
                match buffer::take(tag, message) {
                    Ok(()) => Event::Call { badge },
                    Err(error) => Event::Failed(error),
                }
            }
            Some(Delivery::Notification) => Event::Notified(badge),
            Some(Delivery::BadgeClosed) => Event::Closed { badge },
            None => Event::Failed(Error::Unsupported),
        }
    }

    /// Serves the call in `message` with a protocol's `dispatch`. The answer is sent by the next receive.
    pub fn serve<S>(
        &mut self,
        badge: u64,
        message: &mut Message<OwnedHandle>,
        service: &mut S,
        dispatch: impl FnOnce(&mut S, &mut Self, u64, &mut Message<OwnedHandle>) -> Disposition,
    ) {
        if let Disposition::Reply = dispatch(service, self, badge, message) {
            self.owes = Owes::Sending;
        }
    }

    fn reply_receive(
        &self,
        deadline: u64,
        message: &mut Message<OwnedHandle>,
    ) -> Result<Received, Error> {
        if message.handles.is_empty() {
            buffer::put(message);
            let tag = Tag::new(message.op, message.bytes.len(), 0);
            return match message::reply_receive(self.endpoint, tag, NO_WORDS, deadline) {
                // The caller is gone; that is its own affair.
                Err(Error::NoReply | Error::PeerDied) => message::receive(self.endpoint, deadline),
                received => received,
            };
        }
        // With handles the two steps are apart, to know whether they were moved.
        if reply(message).is_err() {
            // The caller is gone, or has no room for the handles: it fails, and they are closed here.
            message.handles.clear();
        }
        message::receive(self.endpoint, deadline)
    }
}

/// Answers the call that the thread serves.
fn reply(message: &mut Message<OwnedHandle>) -> Result<(), Error> {
    buffer::put(message);
    let tag = Tag::new(message.op, message.bytes.len(), message.handles.len());
    message::reply(tag, NO_WORDS)?;
    for handle in core::mem::take(&mut message.handles) {
        let _ = handle.into_raw();
    }
    Ok(())
}

impl Responder for Port {
    type Handle = OwnedHandle;
    type Parked = OwnedHandle;

    fn park(&mut self) -> Result<OwnedHandle, Error> {
        let parked = syscall::reply_park().map(OwnedHandle::new)?;
        self.owes = Owes::Nothing;
        Ok(parked)
    }

    fn answer(
        &mut self,
        parked: OwnedHandle,
        message: &mut Message<OwnedHandle>,
    ) -> Result<(), Error> {
        // A thread serves one call: the one it has now, if any, waits aside meanwhile.
        let aside = match self.owes {
            Owes::Answer | Owes::Sending => Some(OwnedHandle::new(syscall::reply_park()?)),
            Owes::Nothing => None,
        };
        let answered = take_up(parked).and_then(|()| reply(message));
        if let Some(aside) = aside
            && take_up(aside).is_err()
        {
            // Its caller is gone meanwhile: there is nobody to answer.
            self.owes = Owes::Nothing;
        }
        answered
    }
}

/// Makes a parked call the one that the thread serves; the handle is used up.
fn take_up(parked: OwnedHandle) -> Result<(), Error> {
    syscall::reply_take(parked.raw())?;
    let _ = parked.into_raw();
    Ok(())
}
