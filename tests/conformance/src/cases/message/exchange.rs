//! What arrives: calls, answers, bits and closed badges.

use ipc::abi::info::ThreadState;
use ipc::abi::{Delivery, Error, Handle, NEVER, NOW, Rights, Syscall, Tag};
use sysroot::syscall::message;
use sysroot::{OwnedHandle, syscall, time};

use super::{BADGE, WORDS, call_to, client, copy, endpoint, minted, receive_from, server};
use crate::cases::{SOON, await_state, first_thread, joined, on, status};
use crate::suite::{LAST_WORD, Suite};
use crate::world::{NEVER_ISSUED, PRIORITY, made, raw};

pub fn run(suite: &mut Suite, cpu: u64) {
    calls(suite, cpu);
    serves(suite, cpu);
    other_deliveries(suite, cpu);
    in_order(suite, cpu);
}

/// A call is answered: badge 0, the tag and the words of the answer.
fn calls(suite: &mut Suite, cpu: u64) {
    let what = Syscall::call;
    let end = endpoint();
    for deadline in [NEVER, time::after(1 << 40)] {
        let tag = Tag::new(9, 0, 0);
        let server = server(&end, cpu, move |call, _| {
            let answered = message::reply(Tag::new(call.tag.op() + 1, 0, 0), [4, 3, 2, 1]);
            (call.badge, call.tag, call.words, answered)
        });
        let called = suite.check(
            what,
            "a server that answers",
            &call_to(&end, tag, deadline),
            Ok(()),
        );
        let answer = [0, Tag::new(10, 0, 0).raw(), deadline, 4, 3, 2, 1];
        suite.equal(what, "the answer arrives", called.registers, answer);
        let seen = joined(server);
        suite.equal(what, "the call arrives", seen, (0, tag, WORDS, Ok(())));
    }
    // Nobody waits yet: the call does.
    let server = {
        let theirs = copy(&end, Rights::RECEIVE);
        on(cpu, move || {
            await_state(first_thread(), ThreadState::Calling);
            let received = made("a call", message::receive(theirs.raw(), NEVER));
            message::reply(received.tag, received.words)
        })
    };
    suite.check(
        what,
        "a server that comes later",
        &call_to(&end, Tag::default(), NEVER),
        Ok(()),
    );
    suite.record(
        Syscall::reply,
        "a call that had waited",
        joined(server),
        &[Ok(())],
    );
    let soon = time::after(SOON);
    suite.check(
        what,
        "soon",
        &call_to(&end, Tag::default(), soon),
        Err(Error::TimedOut),
    );
    suite.holds(what, "the deadline has come", time::now() >= soon);
}

/// The serving side: badge, tag, words and payload arrive, and the answer does.
fn serves(suite: &mut Suite, cpu: u64) {
    let end = endpoint();
    let badge = minted(&end);
    let tag = Tag::new(5, 3, 0);
    let first = client(&badge, cpu, tag, NEVER);
    let received = suite.check(
        Syscall::receive,
        "a call that waits",
        &receive_from(&end, NEVER),
        Ok(()),
    );
    let call = [
        BADGE,
        tag.raw(),
        Delivery::Call as u64,
        WORDS[0],
        WORDS[1],
        WORDS[2],
        WORDS[3],
    ];
    suite.equal(
        Syscall::receive,
        "the call arrives",
        received.registers,
        call,
    );
    let second = client(&badge, cpu, tag, NEVER);
    // The call is still served afterwards: its answer is checked below.
    let nothing = raw(NEVER_ISSUED);
    for (what, arguments) in [
        (Syscall::receive, [nothing, NEVER, 0, 0, 0, 0]),
        (Syscall::reply_receive, [nothing, 0, NEVER, 7, 8, 9]),
    ] {
        let case = "nothing, while it serves";
        suite.check(what, case, &arguments, Err(Error::BadHandle));
    }
    let too_large = [Tag::new(0, 4000, 0).raw(), 0, 0, 1, 2, 3];
    suite.check(
        Syscall::reply,
        "too large, while it serves",
        &too_large,
        Err(Error::TooLarge),
    );
    let answer = [raw(end.raw()), Tag::new(6, 0, 0).raw(), NEVER, 7, 8, 9];
    let received = suite.check(
        Syscall::reply_receive,
        "the next call waits",
        &answer,
        Ok(()),
    );
    suite.equal(
        Syscall::reply_receive,
        "the next call arrives",
        received.registers,
        call,
    );
    let answered = joined(first).map(|answer| (answer.badge, answer.tag, answer.words));
    let want = Ok((0, Tag::new(6, 0, 0), [7, 8, 9, LAST_WORD]));
    suite.equal(Syscall::reply_receive, "the answer arrives", answered, want);
    suite.check(
        Syscall::reply,
        "a call that is served",
        &[Tag::new(1, 0, 0).raw(), 0, 0, 1, 2, 3],
        Ok(()),
    );
    suite.equal(
        Syscall::reply,
        "the answer arrives",
        status(joined(second)),
        Ok(()),
    );
    suite.check(
        Syscall::reply,
        "a second time",
        &[0; 6],
        Err(Error::NoReply),
    );
    suite.check(
        Syscall::reply_receive,
        "no call to answer, and none that comes",
        &[raw(end.raw()), 0, time::after(SOON), 0, 0, 0],
        Err(Error::TimedOut),
    );
    suite.check(
        Syscall::receive,
        "soon",
        &receive_from(&end, time::after(SOON)),
        Err(Error::TimedOut),
    );
}

/// What else a receive delivers: bits of the bound notification, and closed badges.
fn other_deliveries(suite: &mut Suite, cpu: u64) {
    let what = Syscall::receive;
    let end = endpoint();
    let bits = OwnedHandle::new(made("a notification", syscall::notification_create()));
    made("a bond", syscall::bind(bits.raw(), first_thread()));
    made("a signal", syscall::signal(bits.raw(), 5));
    let told = suite.check(
        what,
        "bits that are set",
        &receive_from(&end, NEVER),
        Ok(()),
    );
    let want = [5, 0, Delivery::Notification as u64];
    suite.equal(what, "the bits arrive", told.results(), want);
    let none = [0, NOW, 0, 0, 0, 0];
    suite.check(what, "bits alone", &none, Err(Error::TimedOut));
    let theirs = copy(&bits, Rights::SIGNAL);
    let signaller = on(cpu, move || {
        await_state(first_thread(), ThreadState::Receiving);
        syscall::signal(theirs.raw(), 6)
    });
    let told = suite.check(what, "bits alone, never", &[0, NEVER, 0, 0, 0, 0], Ok(()));
    let want = [6, 0, Delivery::Notification as u64];
    suite.equal(what, "bits that are set later", told.results(), want);
    suite.record(
        Syscall::signal,
        "a thread that receives",
        joined(signaller),
        &[Ok(())],
    );
    let theirs = copy(&bits, Rights::WAIT);
    let loosener = on(cpu, move || {
        await_state(first_thread(), ThreadState::Receiving);
        syscall::bind(theirs.raw(), Handle::NONE)
    });
    suite.check(
        what,
        "the bond is loosened",
        &[0, NEVER, 0, 0, 0, 0],
        Err(Error::BadHandle),
    );
    suite.record(
        Syscall::bind,
        "a thread that waits for it",
        joined(loosener),
        &[Ok(())],
    );
    let minted = minted(&end);
    let closer = on(cpu, move || {
        await_state(first_thread(), ThreadState::Receiving);
        drop(minted);
    });
    let told = suite.check(
        what,
        "a badge that is closed later",
        &receive_from(&end, NEVER),
        Ok(()),
    );
    joined(closer);
    let want = [BADGE, 0, Delivery::BadgeClosed as u64];
    suite.equal(what, "a closed badge", told.results(), want);
}

/// What is there at once is delivered in order: bits, a closed badge, then calls by priority.
fn in_order(suite: &mut Suite, cpu: u64) {
    let what = Syscall::receive;
    let end = endpoint();
    let caller = |priority, op| {
        let theirs = copy(&end, Rights::CALL);
        let caller = on(cpu, move || {
            let lowered = syscall::thread_set(Handle::NONE, priority, cpu);
            made("a priority", lowered);
            status(message::call(
                theirs.raw(),
                Tag::new(op, 0, 0),
                WORDS,
                NEVER,
            ))
        });
        await_state(caller.handle(), ThreadState::Calling);
        caller
    };
    let callers = [caller(PRIORITY - 1, 1), caller(PRIORITY, 2)];
    drop(minted(&end));
    let bits = OwnedHandle::new(made("a notification", syscall::notification_create()));
    made("a bond", syscall::bind(bits.raw(), first_thread()));
    made("a signal", syscall::signal(bits.raw(), 1));
    for (name, want) in [
        ("bits come first", [1, 0, Delivery::Notification as u64]),
        (
            "then closed badges",
            [BADGE, 0, Delivery::BadgeClosed as u64],
        ),
        (
            "then the call of the highest priority",
            [0, Tag::new(2, 0, 0).raw(), 0],
        ),
    ] {
        let told = suite.check(what, name, &receive_from(&end, NEVER), Ok(()));
        suite.equal(what, name, told.results(), want);
    }
    made("an answer", message::reply(Tag::default(), WORDS));
    let last = suite.check(what, "then the others", &receive_from(&end, NEVER), Ok(()));
    suite.equal(
        what,
        "then the others",
        last.results()[1],
        Tag::new(1, 0, 0).raw(),
    );
    made("an answer", message::reply(Tag::default(), WORDS));
    for caller in callers {
        suite.record(
            Syscall::call,
            "one of two callers",
            joined(caller),
            &[Ok(())],
        );
    }
}
