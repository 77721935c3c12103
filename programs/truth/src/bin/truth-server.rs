//! `truth-server [turns|park|any]`: works for its clients, in a function for each.
//!
//! - `turns`: one call of client 0 and one of client 1, each from an endpoint of its own, so that their shares are known.
//! - `park`: the same, but both calls are parked first; it works for nobody, and then takes them up, the last one first.
//! - `any`, or nothing: whoever calls next, at a third endpoint. A client that has gone meanwhile gets no answer.
#![no_std]
#![no_main]

use ipc::abi::{Delivery, Error, Handle, NEVER, Tag};
use sysroot::syscall::message::{self, NO_WORDS};
use sysroot::{ExitCode, println, startup, syscall};
use truth::{APART, CLIENTS, SERVED, Turns};

sysroot::entry!(main);

/// For a call of any client. It is longer than the clients that have a deadline wait.
const ANY: u64 = 20_000;

const SERVE: [fn(&mut Turns, u64) -> u64; CLIENTS] = [
    serve_0, serve_1, serve_2, serve_3, serve_4, serve_5, serve_6, serve_7,
];

truth::loops! {
    serve_0 0x5555_0001,
    serve_1 0x5555_0002,
    serve_2 0x5555_0003,
    serve_3 0x5555_0004,
    serve_4 0x5555_0005,
    serve_5 0x5555_0006,
    serve_6 0x5555_0007,
    serve_7 0x5555_0008,
    apart 0x5555_0009,
}

fn main() -> Result<(), ExitCode> {
    let serve = match startup::args().next() {
        Some("turns") => turns,
        Some("park") => park,
        Some("any") | None => any,
        Some(_) => return Err(ExitCode::USAGE),
    };
    serve().map_err(|error| {
        println!("truth-server: {error}");
        ExitCode::FAILURE
    })
}

/// The endpoint that was given under this name.
fn given(name: &str) -> Result<Handle, Error> {
    startup::handle(name).ok_or(Error::NotFound)
}

/// Waits for a call; returns its first word, the number of the client. That a client has gone is delivered, too, and is no call.
fn next_call(endpoint: Handle) -> Result<u64, Error> {
    loop {
        let received = message::receive(endpoint, NEVER)?;
        if Delivery::from_raw(received.delivery) == Some(Delivery::Call) {
            let [client, ..] = received.words;
            return Ok(client);
        }
    }
}

fn turns() -> Result<(), Error> {
    let clients = [given("serve:truth-0")?, given("serve:truth-1")?];
    let mut turns = Turns::new();
    loop {
        for (client, endpoint) in clients.into_iter().enumerate() {
            next_call(endpoint)?;
            serve(client, &mut turns, SERVED[client])?;
        }
    }
}

fn park() -> Result<(), Error> {
    let (first, second) = (given("serve:truth-0")?, given("serve:truth-1")?);
    let mut turns = Turns::new();
    loop {
        next_call(first)?;
        let first_call = syscall::reply_park()?;
        next_call(second)?;
        let second_call = syscall::reply_park()?;
        apart(&mut turns, APART);
        for (client, call) in [(1, second_call), (0, first_call)] {
            match syscall::reply_take(call) {
                Ok(()) => serve(client, &mut turns, SERVED[client])?,
                Err(error) => unless_gone(error)?,
            }
        }
    }
}

fn any() -> Result<(), Error> {
    let endpoint = given("serve:truth-any")?;
    let mut turns = Turns::new();
    loop {
        let client = next_call(endpoint)?;
        serve(client as usize, &mut turns, ANY)?;
    }
}

/// Works for a client, and answers it, unless it has gone meanwhile.
#[inline(always)]
fn serve(client: usize, turns: &mut Turns, number: u64) -> Result<(), Error> {
    SERVE.get(client).ok_or(Error::BadArgument)?(turns, number);
    message::reply(Tag::default(), NO_WORDS).or_else(unless_gone)
}

/// That a client has gone is its own affair.
fn unless_gone(error: Error) -> Result<(), Error> {
    match error {
        Error::NoReply | Error::PeerDied => Ok(()),
        error => Err(error),
    }
}
