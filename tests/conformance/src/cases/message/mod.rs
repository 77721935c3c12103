//! Messages: what arrives, what fails, and who hears of it. The suite's own calls are made by the first thread; the other side is
//! a thread on a CPU that the caller chooses.

mod ending;
mod exchange;
mod transfer;

pub use transfer::starves;

use ipc::abi::info::ThreadState;
use ipc::abi::{Error, Handle, NEVER, Rights, Tag};
use sysroot::syscall::message::{self, Received, Words};
use sysroot::thread::JoinHandle;
use sysroot::{OwnedHandle, handle, syscall};

use super::{await_state, on};
use crate::spec::Arguments;
use crate::suite::{LAST_WORD, Suite};
use crate::world::{made, raw};

/// Words of a message; the last is the one that [`Suite::check`] sends.
const WORDS: Words = [11, 22, 33, LAST_WORD];
const BADGE: u64 = 0xbad6_e000_0000_0001;

pub fn run(suite: &mut Suite, cpu: u64) {
    exchange::run(suite, cpu);
    transfer::run(suite, cpu);
    ending::run(suite, cpu);
}

fn endpoint() -> OwnedHandle {
    OwnedHandle::new(made("an endpoint", syscall::endpoint_create()))
}

fn copy(of: &OwnedHandle, rights: Rights) -> OwnedHandle {
    made("a copy", handle::duplicate(of.raw(), rights))
}

/// A call to an endpoint with [`WORDS`].
fn call_to(endpoint: &OwnedHandle, tag: Tag, deadline: u64) -> Arguments {
    let [first, second, third, _] = WORDS;
    [
        raw(endpoint.raw()),
        tag.raw(),
        deadline,
        first,
        second,
        third,
    ]
}

fn receive_from(endpoint: &OwnedHandle, deadline: u64) -> Arguments {
    [raw(endpoint.raw()), deadline, 0, 0, 0, 0]
}

/// A thread that waits at an endpoint for one call, and does something with it.
fn server<T: Send + 'static>(
    endpoint: &OwnedHandle,
    cpu: u64,
    body: impl FnOnce(Received, Handle) -> T + Send + 'static,
) -> JoinHandle<T> {
    let theirs = copy(endpoint, Rights::RECEIVE);
    let server = on(cpu, move || {
        let received = made("a call", message::receive(theirs.raw(), NEVER));
        body(received, theirs.raw())
    });
    await_state(server.handle(), ThreadState::Receiving);
    server
}

/// A handle with a badge. Its end is told to the endpoint, so it outlives the calls made through it.
fn minted(endpoint: &OwnedHandle) -> OwnedHandle {
    made(
        "a handle",
        handle::mint(endpoint.raw(), BADGE, Rights::CALL),
    )
}

/// A thread that makes a call and waits there.
fn client(
    endpoint: &OwnedHandle,
    cpu: u64,
    tag: Tag,
    deadline: u64,
) -> JoinHandle<Result<Received, Error>> {
    let endpoint = endpoint.raw();
    let client = on(cpu, move || message::call(endpoint, tag, WORDS, deadline));
    await_state(client.handle(), ThreadState::Calling);
    client
}
