//! Calls that are dropped, set aside, or outlived by one of their sides.

use ipc::abi::info::ThreadState;
use ipc::abi::{Delivery, Error, NEVER, NOW, Rights, Syscall, Tag};
use sysroot::syscall::message::{self, NO_WORDS};
use sysroot::thread::JoinHandle;
use sysroot::{OwnedHandle, syscall, time};

use super::{BADGE, call_to, copy, endpoint, minted, receive_from, server};
use crate::cases::{self, SOON, await_state, first_thread, joined, on, status};
use crate::suite::Suite;
use crate::world::{made, parked, raw};

pub fn run(suite: &mut Suite, cpu: u64) {
    fails(suite, cpu);
    parks(suite, cpu);
    clients_go(suite, cpu);
    endings(suite, cpu);
    servers(suite);
}

/// A call fails at once when nobody can answer it any more.
fn fails(suite: &mut Suite, cpu: u64) {
    let what = Syscall::call;
    let end = endpoint();
    let gone = Err(Error::PeerDied);
    let dropped = server(&end, cpu, |_, theirs| status(message::receive(theirs, NOW)));
    suite.check(
        what,
        "a server that receives again",
        &call_to(&end, Tag::default(), NEVER),
        gone,
    );
    suite.record(
        Syscall::receive,
        "it drops the call served",
        joined(dropped),
        &[Err(Error::TimedOut)],
    );
    let closed = server(&end, cpu, |_, _| {
        let reply = made("a reply", syscall::reply_park());
        syscall::handle_close(reply)
    });
    suite.check(
        what,
        "its reply is closed",
        &call_to(&end, Tag::default(), NEVER),
        gone,
    );
    suite.record(Syscall::handle_close, "a reply", joined(closed), &[Ok(())]);
    let late = server(&end, cpu, |_, _| {
        // The caller goes, and waits for the end of this thread; then the answer comes.
        await_state(first_thread(), ThreadState::Waiting);
        status(message::reply(Tag::default(), NO_WORDS))
    });
    suite.check(
        what,
        "a server that is late",
        &call_to(&end, Tag::default(), time::after(SOON)),
        Err(Error::TimedOut),
    );
    suite.record(Syscall::reply, "the caller has gone", joined(late), &[gone]);
}

/// A call can be set aside, and taken up by another thread.
fn parks(suite: &mut Suite, cpu: u64) {
    let (reply, waiting) = parked();
    suite.check(
        Syscall::reply_take,
        "a call that waits",
        &[raw(reply.raw()), 0, 0, 0, 0, 0],
        Ok(()),
    );
    suite.check(
        Syscall::reply_take,
        "again",
        &[raw(reply.raw()), 0, 0, 0, 0, 0],
        Err(Error::WrongState),
    );
    let (other, other_waiting) = parked_by_other(cpu);
    let while_serving = [raw(other.raw()), 0, 0, 0, 0, 0];
    suite.check(
        Syscall::reply_take,
        "while it serves",
        &while_serving,
        Err(Error::WrongState),
    );
    let parked = suite.check(
        Syscall::reply_park,
        "a call that was taken",
        &[0; 6],
        Ok(()),
    );
    let again = cases::handle(&parked);
    let stale = status(syscall::handle_info(reply.raw()));
    suite.equal(
        Syscall::reply_park,
        "it has a new handle",
        stale,
        Err(Error::BadHandle),
    );
    let taken = on(cpu, move || {
        syscall::reply_take(again).and_then(|()| message::reply(Tag::new(3, 0, 0), NO_WORDS))
    });
    suite.record(
        Syscall::reply,
        "a call that another thread received",
        joined(taken),
        &[Ok(())],
    );
    suite.equal(
        Syscall::reply_take,
        "its caller goes on",
        joined(waiting),
        Ok(()),
    );
    suite.check(Syscall::reply_take, "the other", &while_serving, Ok(()));
    suite.check(Syscall::reply, "the other", &[0; 6], Ok(()));
    suite.equal(
        Syscall::reply,
        "the other's caller goes on",
        joined(other_waiting),
        Ok(()),
    );
}

/// As [`parked`], while the first thread serves a call itself.
fn parked_by_other(cpu: u64) -> (OwnedHandle, JoinHandle<Result<(), Error>>) {
    joined(on(cpu, parked))
}

/// A caller that no longer waits is no reason to fail the next.
fn clients_go(suite: &mut Suite, cpu: u64) {
    let end = endpoint();
    let badge = minted(&end);
    let calling = badge.raw();
    let leaving = on(cpu, move || {
        await_state(first_thread(), ThreadState::Receiving);
        // A server that waits gets the message, however late it is; then nobody waits for the answer.
        message::call(calling, Tag::default(), NO_WORDS, NOW)
    });
    suite.check(
        Syscall::receive,
        "one that will leave",
        &receive_from(&end, NEVER),
        Ok(()),
    );
    suite.equal(
        Syscall::call,
        "it leaves",
        status(joined(leaving)),
        Err(Error::TimedOut),
    );
    // So the next thing is received: that its badge is closed.
    drop(badge);
    let answer = [raw(end.raw()), 0, NEVER, 0, 0, 0];
    let told = suite.check(
        Syscall::reply_receive,
        "the caller has gone",
        &answer,
        Ok(()),
    );
    let closed = [BADGE, 0, Delivery::BadgeClosed as u64];
    suite.equal(
        Syscall::reply_receive,
        "a closed badge",
        told.results(),
        closed,
    );
}

/// An endpoint ends with its last handle that may receive, for those who wait on either side.
fn endings(suite: &mut Suite, cpu: u64) {
    let gone = Err(Error::PeerDied);
    for what in [Syscall::receive, Syscall::reply_receive] {
        let end = endpoint().into_raw();
        let closer = on(cpu, move || {
            await_state(first_thread(), ThreadState::Receiving);
            syscall::handle_close(end)
        });
        let waits = match what {
            Syscall::receive => [raw(end), NEVER, 0, 0, 0, 0],
            _ => [raw(end), 0, NEVER, 0, 0, 0],
        };
        suite.check(what, "its last handle is closed", &waits, gone);
        suite.record(
            Syscall::handle_close,
            "one that is received from",
            joined(closer),
            &[Ok(())],
        );
    }
    let end = endpoint();
    let theirs = copy(&end, Rights::CALL);
    let receiver = end.into_raw();
    let closer = on(cpu, move || {
        await_state(first_thread(), ThreadState::Calling);
        syscall::handle_close(receiver)
    });
    suite.check(
        Syscall::call,
        "the endpoint ends",
        &call_to(&theirs, Tag::default(), NEVER),
        gone,
    );
    suite.record(
        Syscall::handle_close,
        "the last that may receive",
        joined(closer),
        &[Ok(())],
    );
    suite.check(
        Syscall::call,
        "the endpoint has ended",
        &call_to(&theirs, Tag::default(), NEVER),
        gone,
    );
}

/// Eight threads may serve an endpoint.
fn servers(suite: &mut Suite) {
    let end = endpoint();
    let server = || {
        let theirs = copy(&end, Rights::RECEIVE);
        let server = on(0, move || status(message::receive(theirs.raw(), NEVER)));
        await_state(server.handle(), ThreadState::Receiving);
        server
    };
    let servers = [(); 8].map(|()| server());
    let limit = Err(Error::LimitReached);
    suite.check(
        Syscall::receive,
        "a ninth server",
        &receive_from(&end, NOW),
        limit,
    );
    let answer = [raw(end.raw()), 0, NOW, 0, 0, 0];
    suite.check(Syscall::reply_receive, "a ninth server", &answer, limit);
    for server in servers {
        let called = status(message::call(end.raw(), Tag::default(), NO_WORDS, NEVER));
        suite.record(
            Syscall::call,
            "a server that ends",
            called,
            &[Err(Error::PeerDied)],
        );
        drop(server);
    }
}
