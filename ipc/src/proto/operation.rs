//! What a protocol is made of: operations, the right to answer one, and the failures that stay apart.
//!
//! Three things can go wrong, and whose fault it is differs, so they never share a type: the *transport* (the kernel's
//! [`Error`]: the peer died, the deadline passed), the *protocol* ([`ProtocolError`]: one side speaks another language)
//! and the *service* (the operation's own error: the server understood, and refuses).

use core::marker::PhantomData;

use postcard::experimental::max_size::MaxSize;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::message::{HandleSet, Message};
use crate::abi::Error;
use crate::abi::message::PAYLOAD_MAX;

/// Status of a reply, in the operation field of its tag.
pub mod status {
    /// The payload is the operation's reply.
    pub const DONE: u16 = 0;
    /// The payload is the service's error.
    pub const REFUSED: u16 = 1;
    /// The payload is a [`super::ProtocolError`] number.
    pub const MISUNDERSTOOD: u16 = 2;
}

/// One operation of a protocol. Made by [`protocol!`](crate::protocol).
pub trait Operation {
    /// Its number, never reused.
    const NUMBER: u16;
    /// Its name.
    const NAME: &'static str;
    /// What a caller sends.
    type Request: Serialize + DeserializeOwned + MaxSize;
    /// The handles that go with it.
    type RequestHandles<H>: HandleSet<H>;
    /// What the server answers.
    type Reply: Serialize + DeserializeOwned + MaxSize;
    /// The handles that come with it.
    type ReplyHandles<H>: HandleSet<H>;
    /// Why the server refuses.
    type Error: Serialize + DeserializeOwned + MaxSize;
}

/// Whether every message of an operation fits the IPC buffer.
#[must_use]
pub const fn fits<O: Operation>() -> bool {
    O::Request::POSTCARD_MAX_SIZE <= PAYLOAD_MAX
        && O::Reply::POSTCARD_MAX_SIZE <= PAYLOAD_MAX
        && O::Error::POSTCARD_MAX_SIZE <= PAYLOAD_MAX
}

/// One side does not understand the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ProtocolError {
    /// The server knows no such operation.
    UnknownOperation = 1,
    /// The request's payload is not one of that operation.
    BadRequest = 2,
    /// The request's handles are not as many as the operation takes.
    BadHandles = 3,
    /// The reply is not one of that operation.
    BadReply = 4,
}

impl ProtocolError {
    fn from_wire(number: u8) -> Self {
        match number {
            1 => Self::UnknownOperation,
            2 => Self::BadRequest,
            3 => Self::BadHandles,
            _ => Self::BadReply,
        }
    }
    /// One line for a person.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::UnknownOperation => "the server does not know this operation",
            Self::BadRequest => "the server could not read the request",
            Self::BadHandles => "wrong number of handles in the request",
            Self::BadReply => "the reply could not be read",
        }
    }
}

/// Why a call has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError<E> {
    /// The kernel could not carry it, or the server died.
    Transport(Error),
    /// The two sides do not understand each other.
    Protocol(ProtocolError),
    /// The server refused.
    Service(E),
}

impl<E: core::fmt::Display> core::fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Transport(error) => f.write_str(error.text()),
            Self::Protocol(error) => f.write_str(error.text()),
            Self::Service(error) => error.fmt(f),
        }
    }
}

/// How a client reaches a server.
pub trait Transport {
    /// An owned handle: dropping it closes it.
    type Handle;

    /// Sends the message with its handles, and waits until the reply has taken its place.
    ///
    /// # Errors
    /// The kernel's. The message's handles are gone then, too.
    fn call(&mut self, message: &mut Message<Self::Handle>) -> Result<(), Error>;
}

/// How a server answers calls out of their order.
pub trait Responder {
    /// An owned handle: dropping it closes it.
    type Handle;
    /// The right to answer one parked call. Dropping it fails the caller at once.
    type Parked;

    /// Sets the call that is being served aside.
    ///
    /// # Errors
    /// The kernel has no room for another parked call.
    fn park(&mut self) -> Result<Self::Parked, Error>;

    /// Answers a parked call, also while another one is being served.
    ///
    /// # Errors
    /// The caller is gone, or its deadline passed. The message's handles are gone then, too.
    fn answer(
        &mut self,
        parked: Self::Parked,
        message: &mut Message<Self::Handle>,
    ) -> Result<(), Error>;
}

/// What a server makes of a call that it does not refuse. Only a [`Call`] makes one, so each call is answered or parked
/// exactly once.
pub struct Outcome<O: Operation, H>(Answer<O, H>);

enum Answer<O: Operation, H> {
    Reply(O::Reply, O::ReplyHandles<H>),
    Parked,
}

/// What a server's method returns: an outcome, or the service's error.
pub type Served<O, H> = Result<Outcome<O, H>, <O as Operation>::Error>;

/// The right to answer later, and what the server's method returns instead of an answer.
pub type Aside<P, O> = (Parked<P, O>, Outcome<O, <P as Responder>::Handle>);

/// What a call brings: the reply and the handles that came with it.
pub type Called<O, H> = Result<
    (<O as Operation>::Reply, <O as Operation>::ReplyHandles<H>),
    CallError<<O as Operation>::Error>,
>;

/// A call being served: who made it, and the right to answer it.
#[derive(Debug)]
pub struct Call<'a, P, O> {
    responder: &'a mut P,
    badge: u64,
    operation: PhantomData<O>,
}

impl<'a, P: Responder, O: Operation> Call<'a, P, O> {
    /// Badge of the endpoint handle that the call was made through: who asks.
    #[must_use]
    pub const fn badge(&self) -> u64 {
        self.badge
    }
    /// The responder, to answer *other*, parked calls with.
    pub const fn responder(&mut self) -> &mut P {
        self.responder
    }
    /// Answers now, with a value and handles.
    pub fn reply_with(
        self,
        value: O::Reply,
        handles: O::ReplyHandles<P::Handle>,
    ) -> Outcome<O, P::Handle> {
        Outcome(Answer::Reply(value, handles))
    }
    /// Sets the call aside, to be answered later through the token; dropping the token fails the caller.
    ///
    /// # Errors
    /// The kernel has no room for another parked call; the caller should be refused.
    pub fn park(self) -> Result<Aside<P, O>, Error> {
        self.try_park().map_err(|(_, error)| error)
    }
    /// The same, for a call that can be answered where it cannot be set aside.
    ///
    /// # Errors
    /// The call, and why.
    pub fn try_park(self) -> Result<Aside<P, O>, (Self, Error)> {
        match self.responder.park() {
            Ok(reply) => {
                let operation = PhantomData;
                let parked = Parked { reply, operation };
                Ok((parked, Outcome(Answer::Parked)))
            }
            Err(error) => Err((self, error)),
        }
    }
}

impl<P: Responder, O> Call<'_, P, O>
where
    O: Operation<ReplyHandles<P::Handle> = ()>,
{
    /// Answers now.
    pub fn reply(self, value: O::Reply) -> Outcome<O, P::Handle> {
        self.reply_with(value, ())
    }
}

/// The right to answer one call, later. Dropping it fails the caller at once.
#[derive(Debug)]
pub struct Parked<P: Responder, O> {
    reply: P::Parked,
    operation: PhantomData<O>,
}

impl<P: Responder, O: Operation> Parked<P, O> {
    /// Answers with a value and handles.
    ///
    /// # Errors
    /// The caller is gone, or its deadline passed.
    pub fn answer_with(
        self,
        responder: &mut P,
        value: &O::Reply,
        handles: O::ReplyHandles<P::Handle>,
    ) -> Result<(), Error> {
        let mut message = Message::new();
        encode_reply::<O, _>(&mut message, value, handles);
        responder.answer(self.reply, &mut message)
    }

    /// Refuses.
    ///
    /// # Errors
    /// The caller is gone, or its deadline passed.
    pub fn refuse(self, responder: &mut P, error: &O::Error) -> Result<(), Error> {
        let mut message = Message::new();
        encode(&mut message, status::REFUSED, error);
        responder.answer(self.reply, &mut message)
    }
}

impl<P: Responder, O> Parked<P, O>
where
    O: Operation<ReplyHandles<P::Handle> = ()>,
{
    /// Answers.
    ///
    /// # Errors
    /// The caller is gone, or its deadline passed.
    pub fn answer(self, responder: &mut P, value: &O::Reply) -> Result<(), Error> {
        self.answer_with(responder, value, ())
    }
}

/// What became of a call that was dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Disposition {
    /// The message now holds the reply: send it.
    Reply,
    /// The server parked the call: there is nothing to send.
    Parked,
}

/// Makes one call of operation `O`, using `message` as its scratch space.
///
/// # Errors
/// See [`CallError`].
pub fn call<O: Operation, T: Transport>(
    transport: &mut T,
    message: &mut Message<T::Handle>,
    request: &O::Request,
    handles: O::RequestHandles<T::Handle>,
) -> Called<O, T::Handle> {
    let bad_reply = CallError::Protocol(ProtocolError::BadReply);
    if message.put(O::NUMBER, request).is_err() {
        return Err(CallError::Protocol(ProtocolError::BadRequest));
    }
    handles.put(&mut message.handles);
    transport.call(message).map_err(CallError::Transport)?;
    match message.op {
        status::DONE => match (message.get(), HandleSet::take(&mut message.handles)) {
            (Ok(value), Some(handles)) => Ok((value, handles)),
            _ => Err(bad_reply),
        },
        status::REFUSED => Err(message.get().map_or(bad_reply, CallError::Service)),
        status::MISUNDERSTOOD => Err(message.get().map_or(bad_reply, |number| {
            CallError::Protocol(ProtocolError::from_wire(number))
        })),
        _ => Err(bad_reply),
    }
}

/// Serves the call in `message` with `method`, and leaves the reply there.
pub fn serve<O: Operation, P: Responder>(
    responder: &mut P,
    badge: u64,
    message: &mut Message<P::Handle>,
    method: impl FnOnce(
        Call<'_, P, O>,
        O::Request,
        O::RequestHandles<P::Handle>,
    ) -> Served<O, P::Handle>,
) -> Disposition {
    let Ok(request) = message.get() else {
        return misunderstood(message, ProtocolError::BadRequest);
    };
    let Some(handles) = HandleSet::take(&mut message.handles) else {
        return misunderstood(message, ProtocolError::BadHandles);
    };
    let call = Call {
        responder,
        badge,
        operation: PhantomData,
    };
    match method(call, request, handles) {
        Ok(Outcome(Answer::Reply(value, handles))) => {
            encode_reply::<O, _>(message, &value, handles);
        }
        Ok(Outcome(Answer::Parked)) => return Disposition::Parked,
        Err(error) => encode(message, status::REFUSED, &error),
    }
    Disposition::Reply
}

/// Answers a call that was not understood.
pub fn misunderstood<H>(message: &mut Message<H>, error: ProtocolError) -> Disposition {
    encode(message, status::MISUNDERSTOOD, &(error as u8));
    Disposition::Reply
}

fn encode_reply<O: Operation, H>(
    message: &mut Message<H>,
    value: &O::Reply,
    handles: O::ReplyHandles<H>,
) {
    encode(message, status::DONE, value);
    if message.op == status::DONE {
        handles.put(&mut message.handles);
    }
}

/// Puts a value into a reply. The sizes were checked when the protocol was compiled, so only a `Serialize` that fails by
/// itself gets here otherwise: the caller then reads a reply that is none.
fn encode<H, V: Serialize>(message: &mut Message<H>, status: u16, value: &V) {
    if message.put(status, value).is_err() {
        message.op = status::MISUNDERSTOOD;
        message.bytes.clear();
    }
}
