//! Entering the kernel, and calling a server in another process.
//!
//! Client and server use the system-call stubs and nothing above them. The server answers each call with the words that came,
//! and [`CHECK`] with what it saw of the call: so a message that does not arrive whole is a failure.

use core::hint::black_box;

use ipc::abi::{Error, Handle, NEVER, ObjectType, Rights, Syscall, Tag};
use sysroot::syscall::message::{NO_WORDS, Received, Words, call, receive, reply, reply_receive};
use sysroot::{ExitCode, syscall, time};

use super::buffer;
use super::counter::Counter;
use super::failure::{Effect, Failure, ensure, given, kernel};
use super::rounds::Rounds;
use crate::figure::Figure;

/// Rounds of each; for handles few enough for the server's table, which keeps them all.
const ROUNDS: usize = 200;
/// The operation that is measured: answered with the words that came.
const ECHO: u16 = 1;
/// Answered with the sum of the payload and the type of the handle.
const CHECK: u16 = 2;
/// Ends the server.
const END: u16 = 3;
/// Answered once a call by the handle that came with it is.
pub const RELAY: u16 = 4;
/// The payload.
const PAYLOAD: usize = 256;
/// A deadline that no call comes near, in nanoseconds from now.
const DEADLINE: u64 = 60_000_000_000;

/// Measures them.
pub fn measure(counter: Counter) -> Result<(), Failure> {
    Rounds::collect(ROUNDS, || {
        let (count, result) = counter.count(syscall::null);
        result.map_err(kernel(Syscall::null)).map(|()| count)
    })?
    .print(Figure::Null);

    let peer = Peer {
        counter,
        endpoint: given("bench-peer")?,
    };
    let words = [1, 2, 3, 4];
    peer.calls(Tag::new(ECHO, 0, 0), NO_WORDS, NEVER)?
        .print(Figure::Call);
    peer.calls(Tag::new(ECHO, 0, 0), words, NEVER)?
        .print(Figure::CallWords);
    let deadline = time::after(DEADLINE);
    peer.calls(Tag::new(ECHO, 0, 0), NO_WORDS, deadline)?
        .print(Figure::CallDeadline);

    let payload: [u8; PAYLOAD] = core::array::from_fn(|index| index as u8);
    buffer::put(&payload);
    peer.calls(Tag::new(ECHO, PAYLOAD, 0), NO_WORDS, NEVER)?
        .print(Figure::CallPayload);
    // What was printed went through the buffer.
    buffer::put(&payload);
    let [sum, ..] = peer.check(Tag::new(CHECK, PAYLOAD, 0))?;
    let expected = payload.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    ensure(sum == expected, Effect::PayloadSent)?;

    let notification =
        syscall::notification_create().map_err(kernel(Syscall::notification_create))?;
    buffer::put_handle(notification, Rights::SIGNAL);
    peer.calls(Tag::new(ECHO, 0, 1), NO_WORDS, NEVER)?
        .print(Figure::CallHandle);
    buffer::put_handle(notification, Rights::SIGNAL);
    let [_, kind, ..] = peer.check(Tag::new(CHECK, 0, 1))?;
    ensure(kind == ObjectType::Notification as u64, Effect::HandleSent)?;

    Rounds::collect(ROUNDS, || {
        let (count, result) = counter.count(|| syscall::signal(notification, 1));
        result.map_err(kernel(Syscall::signal)).map(|()| count)
    })?
    .print(Figure::Signal);
    Ok(())
}

/// Ends the server.
pub fn end() -> Result<(), Failure> {
    let end = call(given("bench-peer")?, Tag::new(END, 0, 0), NO_WORDS, NEVER);
    end.map_err(kernel(Syscall::call)).map(drop)
}

/// The server as the client sees it.
struct Peer {
    counter: Counter,
    endpoint: Handle,
}

impl Peer {
    /// Calls it many times with the same message.
    fn calls(&self, tag: Tag, words: Words, deadline: u64) -> Result<Rounds, Failure> {
        let (endpoint, tag, words, deadline) = black_box((self.endpoint, tag, words, deadline));
        Rounds::collect(ROUNDS, || {
            let (count, reply) = self.counter.count(|| call(endpoint, tag, words, deadline));
            let reply = reply.map_err(kernel(Syscall::call))?;
            ensure(reply.words == words, Effect::WordsBack)?;
            Ok(count)
        })
    }

    /// What it saw of this call.
    fn check(&self, tag: Tag) -> Result<Words, Failure> {
        let reply = call(self.endpoint, tag, NO_WORDS, NEVER).map_err(kernel(Syscall::call))?;
        Ok(reply.words)
    }
}

/// The server: answers until it is told to end.
pub fn serve() -> ExitCode {
    match answer() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            sysroot::println!("bench-peer: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn answer() -> Result<(), Failure> {
    let endpoint = given("serve:bench-peer")?;
    let mut received = receive(endpoint, NEVER);
    loop {
        let Received { tag, words, .. } = received.map_err(kernel(Syscall::receive))?;
        let words = match tag.op() {
            ECHO => words,
            RELAY => {
                call(buffer::handle(), Tag::new(RELAY, 0, 0), words, NEVER)
                    .map_err(kernel(Syscall::call))?
                    .words
            }
            CHECK => check(tag).map_err(kernel(Syscall::handle_info))?,
            _ => break,
        };
        received = reply_receive(endpoint, Tag::new(tag.op(), 0, 0), words, NEVER);
    }
    reply(Tag::new(END, 0, 0), NO_WORDS).map_err(kernel(Syscall::reply))
}

/// What came with a call.
fn check(tag: Tag) -> Result<Words, Error> {
    let kind = match tag.handles() {
        0 => 0,
        _ => syscall::handle_info(buffer::handle())?.0,
    };
    Ok([buffer::sum(tag.len()), kind, 0, 0])
}
