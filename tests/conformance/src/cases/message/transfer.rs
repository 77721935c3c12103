//! Handles in messages: they arrive, or they stay where they are.

use ipc::abi::message::SLOT_MOVE;
use ipc::abi::{Error, Handle, NEVER, Rights, Syscall, Tag};
use ipc::proto::{Message, Transport};
use sysroot::syscall::message::{self, NO_WORDS};
use sysroot::thread::JoinHandle;
use sysroot::{Connection, OwnedHandle, syscall};

use super::{call_to, client, copy, endpoint, minted, receive_from, server};
use crate::buffer;
use crate::cases::{joined, on, status};
use crate::suite::Suite;
use crate::systematic::Filling;
use crate::world::{NEVER_ISSUED, made, raw};

pub fn run(suite: &mut Suite, cpu: u64) {
    handles_go(suite, cpu);
    handles_stay(suite, cpu);
}

/// Handles and payload of a message arrive, with the rights that were kept.
fn handles_go(suite: &mut Suite, cpu: u64) {
    let what = Syscall::call;
    let end = endpoint();
    let badge = minted(&end);
    let bits = OwnedHandle::new(made("a notification", syscall::notification_create()));
    let moved = copy(&bits, Rights::SIGNAL | Rights::WAIT | Rights::TRANSFER).into_raw();
    let server = server(&end, cpu, |call, _| {
        // The payload and the handles are in this thread's buffer, and go back from there.
        (
            call.tag,
            message::reply(Tag::new(0, call.tag.len(), 0), NO_WORDS),
        )
    });
    buffer::write(0, b"conformance");
    buffer::attach(0, moved, Rights::SIGNAL.bits() | SLOT_MOVE);
    buffer::attach(1, bits.raw(), (Rights::WAIT | Rights::POWER).bits());
    let tag = Tag::new(1, 11, 2);
    let called = suite.check(what, "two handles", &call_to(&end, tag, NEVER), Ok(()));
    suite.equal(
        what,
        "the length of the answer",
        called.registers[1],
        Tag::new(0, 11, 0).raw(),
    );
    let payload = buffer::read();
    suite.equal(
        what,
        "the payload comes back",
        payload.get(..11),
        Some(&b"conformance"[..]),
    );
    suite.equal(what, "they arrive", joined(server), (tag, Ok(())));
    let gone = status(syscall::handle_info(moved));
    suite.equal(
        what,
        "a moved handle names nothing",
        gone,
        Err(Error::BadHandle),
    );
    let there = status(syscall::handle_info(bits.raw()));
    suite.equal(what, "a copied handle stays", there, Ok(()));
    let caller = client(&badge, cpu, Tag::default(), NEVER);
    made("a call", message::receive(end.raw(), NEVER));
    buffer::attach(0, bits.raw(), Rights::WAIT.bits());
    suite.check(
        Syscall::reply,
        "a handle",
        &[Tag::new(0, 0, 1).raw(), 0, 0, 0, 0, 0],
        Ok(()),
    );
    let came = joined(caller).map(|answer| answer.tag.handles());
    suite.equal(Syscall::reply, "the handle arrives", came, Ok(1));
    // From a client, whose buffer is its own, into this one.
    let giver = {
        let theirs = copy(&end, Rights::CALL);
        let bits = copy(
            &bits,
            Rights::SIGNAL | Rights::WAIT | Rights::DUPLICATE | Rights::TRANSFER,
        );
        on(cpu, move || {
            let mut message = Message::<OwnedHandle>::default();
            let fits = message.handles.push(bits).is_ok();
            let called = Connection::new(theirs.raw()).call(&mut message);
            (fits, called)
        })
    };
    let received = suite.check(
        Syscall::receive,
        "a handle",
        &receive_from(&end, NEVER),
        Ok(()),
    );
    let (came, rights) = buffer::attached(0);
    let tag = Tag::from_raw(received.registers[1]);
    suite.equal(Syscall::receive, "the tag counts it", tag.handles(), 1);
    let named = syscall::handle_info(came).map(|info| info.1);
    suite.equal(
        Syscall::receive,
        "the slot says its rights",
        named,
        Ok(rights),
    );
    made("an answer", message::reply(Tag::default(), NO_WORDS));
    suite.equal(
        Syscall::receive,
        "its sender goes on",
        joined(giver),
        (true, Ok(())),
    );
    made("an end", syscall::handle_close(came));
}

/// A message with a handle that cannot go fails, and all of its handles stay.
fn handles_stay(suite: &mut Suite, cpu: u64) {
    let end = endpoint();
    let badge = minted(&end);
    let bits = OwnedHandle::new(made("a notification", syscall::notification_create()));
    let own = copy(&bits, Rights::DUPLICATE);
    let fixed = copy(&bits, Rights::TRANSFER);
    let caller = client(&badge, cpu, Tag::default(), NEVER);
    made("a call", message::receive(end.raw(), NEVER));
    let server = server(&end, cpu, |_, _| ());
    let tag = Tag::new(0, 0, 2);
    for (name, second, flags, error) in [
        ("nothing", NEVER_ISSUED, SLOT_MOVE, Error::BadHandle),
        ("0", Handle::NONE, SLOT_MOVE, Error::BadHandle),
        (
            "the first one again",
            bits.raw(),
            SLOT_MOVE,
            Error::BadHandle,
        ),
        (
            "one without TRANSFER",
            own.raw(),
            SLOT_MOVE,
            Error::MissingRight,
        ),
        (
            "a copy of one without DUPLICATE",
            fixed.raw(),
            0,
            Error::MissingRight,
        ),
    ] {
        for (what, arguments) in [
            (Syscall::call, call_to(&end, tag, NEVER)),
            (Syscall::reply, [tag.raw(), 0, 0, 0, 0, 0]),
            (
                Syscall::reply_receive,
                [raw(end.raw()), tag.raw(), NEVER, 0, 0, 0],
            ),
        ] {
            buffer::attach(0, bits.raw(), Rights::all().bits() | SLOT_MOVE);
            buffer::attach(1, second, flags | Rights::all().bits());
            suite.check(
                what,
                format_args!("a handle and {name}"),
                &arguments,
                Err(error),
            );
            let stays = status(syscall::handle_info(bits.raw()));
            suite.equal(
                what,
                format_args!("a handle and {name}: the first stays"),
                stays,
                Ok(()),
            );
        }
    }
    // Neither the client nor the server has noticed anything.
    suite.check(Syscall::reply, "after all of them", &[0; 6], Ok(()));
    let answered = status(joined(caller));
    suite.record(Syscall::call, "the client goes on", answered, &[Ok(())]);
    end_server(suite, &end, server);
    without_room(suite, cpu, Error::LimitReached);
}

/// When no table can grow, a message's handles stay where they are.
pub fn starves(suite: &mut Suite) {
    without_room(suite, 0, Error::OutOfMemory);
}

/// A table that is full takes no message, for the reason that `error` says.
fn without_room(suite: &mut Suite, cpu: u64, error: Error) {
    let end = endpoint();
    let badge = minted(&end);
    let bits = OwnedHandle::new(made("a notification", syscall::notification_create()));
    let caller = client(&badge, cpu, Tag::default(), NEVER);
    made("a call", message::receive(end.raw(), NEVER));
    let server = server(&end, cpu, |_, _| ());
    let stays = |suite: &mut Suite, what| {
        let there = status(syscall::handle_info(bits.raw()));
        let case = format_args!("{error:?}: the handle stays");
        suite.equal(what, case, there, Ok(()));
    };
    let (filling, full) = Filling::new(bits.raw());
    suite.equal(Syscall::handle_duplicate, "the last handle", full, error);
    buffer::attach(0, bits.raw(), Rights::all().bits() | SLOT_MOVE);
    let one = Tag::new(0, 0, 1);
    suite.check(
        Syscall::call,
        "the server has no place for a handle",
        &call_to(&end, one, NEVER),
        Err(error),
    );
    stays(suite, Syscall::call);
    suite.check(
        Syscall::reply_park,
        "no place for a handle",
        &[0; 6],
        Err(error),
    );
    suite.check(
        Syscall::reply,
        "the client has no place for a handle",
        &[one.raw(), 0, 0, 0, 0, 0],
        Err(Error::PeerDied),
    );
    stays(suite, Syscall::reply);
    drop(filling);
    let refused = status(joined(caller));
    suite.record(
        Syscall::call,
        "no place for the answer's handle",
        refused,
        &[Err(error)],
    );
    end_server(suite, &end, server);
}

/// Calls a server that ends instead of answering.
fn end_server(suite: &mut Suite, end: &OwnedHandle, server: JoinHandle<()>) {
    let call = call_to(end, Tag::default(), NEVER);
    let gone = Err(Error::PeerDied);
    suite.check(Syscall::call, "a server that ends", &call, gone);
    joined(server);
}
