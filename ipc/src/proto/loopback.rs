//! A client and its server in one process, without a kernel: for the host tests of servers and of what calls them.

use super::message::Message;
use super::operation::{Disposition, Responder, Transport};
use crate::abi::Error;

/// A `dispatch` function, as [`protocol!`](crate::protocol) makes it.
pub type Dispatch<S> = fn(&mut S, &mut Desk, u64, &mut Message<u32>) -> Disposition;

/// A transport that hands each call to a service in place. Handles are plain numbers.
#[derive(Debug)]
pub struct Loopback<S> {
    /// The service.
    pub service: S,
    /// Its responder.
    pub desk: Desk,
    /// Badge that the calls come with.
    pub badge: u64,
    dispatch: Dispatch<S>,
}

impl<S> Loopback<S> {
    /// A transport to this service.
    pub const fn new(service: S, dispatch: Dispatch<S>) -> Self {
        Self {
            service,
            desk: Desk::new(),
            badge: 0,
            dispatch,
        }
    }
}

impl<S> Transport for Loopback<S> {
    type Handle = u32;

    /// A call that the server parks times out, as nobody else can run; [`Desk::last_answer`] has what it says later.
    fn call(&mut self, message: &mut Message<u32>) -> Result<(), Error> {
        match (self.dispatch)(&mut self.service, &mut self.desk, self.badge, message) {
            Disposition::Reply => Ok(()),
            Disposition::Parked => Err(Error::TimedOut),
        }
    }
}

/// A responder that keeps the last answer to a parked call.
#[derive(Debug, Default)]
pub struct Desk {
    parked: u32,
    /// Refuse the next call to be parked, as a kernel without room does.
    pub full: bool,
    /// Number of the parked call, from 1, and the answer.
    pub last_answer: Option<(u32, Message<u32>)>,
}

impl Desk {
    /// An empty one.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            parked: 0,
            full: false,
            last_answer: None,
        }
    }
}

impl Responder for Desk {
    type Handle = u32;
    type Parked = u32;

    fn park(&mut self) -> Result<u32, Error> {
        if core::mem::take(&mut self.full) {
            return Err(Error::OutOfMemory);
        }
        self.parked += 1;
        Ok(self.parked)
    }

    fn answer(&mut self, parked: u32, message: &mut Message<u32>) -> Result<(), Error> {
        self.last_answer = Some((parked, core::mem::take(message)));
        Ok(())
    }
}
