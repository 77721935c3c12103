//! A reply can be set aside, taken up by another thread, handed to another program, or dropped.

use super::*;

impl Pair {
    fn park(&mut self) -> Handle {
        self.sim.make(self.server, Syscall::reply_park, &[])
    }
    fn take(&mut self, user: User, reply: Handle) -> Outcome {
        self.sim.issue(user, Syscall::reply_take, &[raw(reply)])
    }
}

#[test]
fn a_parked_call_waits_while_others_are_served() {
    let mut pair = Pair::new(4);
    let second = pair.other(31);
    pair.serving();
    let parked = pair.park();
    assert_eq!(pair.reply(0).error(), Error::NoReply);
    let call = [raw(pair.mouth), tag(2), NEVER];
    assert_eq!(
        pair.sim.issue(second, Syscall::call, &call),
        Outcome::Blocked
    );
    assert_eq!(pair.receive(NEVER).results()[1], tag(2));
    let server = pair.server;
    assert_eq!(pair.take(server, parked).error(), Error::WrongState);
    pair.reply(20).results();
    assert_eq!(pair.sim.outcome(second).results()[1], tag(20));
    pair.take(server, parked).results();
    assert_eq!(pair.take(server, parked).error(), Error::WrongState);
    pair.reply(10).results();
    assert_eq!(pair.sim.outcome(pair.client).results()[1], tag(10));
    assert_eq!(pair.take(server, parked).error(), Error::BadHandle);
    pair.end();
}

#[test]
fn a_reply_can_be_handed_over() {
    let mut pair = Pair::new(4);
    pair.serving();
    let parked = pair.park();
    // The server passes it to a thread of another program, through an endpoint of that one.
    let (third, helper) = pair.sim.alone(60);
    let endpoint = pair.sim.make(pair.sim.root, Syscall::endpoint_create, &[]);
    let ear = pair.sim.give(third, endpoint, Rights::RECEIVE);
    let mouth = pair.sim.give(pair.serves, endpoint, Rights::CALL);
    pair.sim.attach(pair.server, 0, parked, Rights::all(), true);
    let call = [raw(mouth), Tag::new(1, 0, 1).raw(), NEVER];
    assert_eq!(
        pair.sim.issue(pair.server, Syscall::call, &call),
        Outcome::Blocked
    );
    pair.sim
        .issue(helper, Syscall::receive, &[raw(ear), NEVER])
        .results();
    let (there, _) = pair.sim.attached(helper, 0);
    pair.sim.issue(helper, Syscall::reply, &[tag(1)]).results();
    pair.take(helper, there).results();
    pair.sim.issue(helper, Syscall::reply, &[tag(33)]).results();
    assert_eq!(pair.sim.outcome(pair.client).results()[1], tag(33));
    pair.end();
}

#[test]
fn a_dropped_reply_fails_its_caller_at_once() {
    for how in 0..4 {
        let mut pair = Pair::new(4);
        pair.serving();
        match how {
            // Receiving drops what is served.
            0 => drop(pair.receive(NEVER)),
            1 => {
                let parked = pair.park();
                pair.sim.close(pair.server, parked);
            }
            2 => {
                pair.park();
                let serves = pair.serves;
                pair.kill(serves);
                pair.sim.ticks(6);
            }
            // The last thread of the server ends with the call in hand.
            _ => drop(pair.sim.issue(pair.server, Syscall::thread_exit, &[])),
        }
        assert_eq!(
            pair.sim.outcome(pair.client).error(),
            Error::PeerDied,
            "{how}"
        );
        pair.end();
    }
}

/// A reply names one call. Calls of other kinds that are given it by mistake leave it alone.
#[test]
fn a_reply_is_not_used_up_by_mistakes() {
    let mut pair = Pair::new(4);
    pair.serving();
    let parked = raw(pair.park());
    let mistakes: [(Syscall, &[u64]); 5] = [
        (Syscall::bind, &[parked, 0]),
        (Syscall::map, &[parked, 0, 0x40_0000, 0, 1, 128]),
        (Syscall::memory_info, &[parked]),
        (Syscall::thread_start, &[parked]),
        (Syscall::process_status, &[parked]),
    ];
    for (what, arguments) in mistakes {
        let outcome = pair.sim.issue(pair.server, what, arguments);
        assert!(matches!(outcome, Outcome::Returned(Err(_))), "{what:?}");
        assert_eq!(pair.sim.outcome(pair.client), Outcome::Blocked, "{what:?}");
    }
    let copy = [parked, Rights::TRANSFER.bits().into()];
    let copy = pair
        .sim
        .issue(pair.server, Syscall::handle_duplicate, &copy);
    assert_eq!(copy.error(), Error::MissingRight);
    let server = pair.server;
    pair.take(server, handle(parked)).results();
    pair.reply(4).results();
    assert_eq!(pair.sim.outcome(pair.client).results()[1], tag(4));
    pair.end();
}

/// A receive that names no endpoint has changed nothing: the call that is served can still be answered.
#[test]
fn a_receive_by_mistake_drops_no_call() {
    let mut pair = Pair::new(2);
    pair.serving();
    // Without a bond, nobody can wait for bits alone.
    for mistake in [0, raw(pair.ear) ^ 1 << 31] {
        let receive = [mistake, NEVER];
        let outcome = pair.sim.issue(pair.server, Syscall::receive, &receive);
        assert_eq!(outcome.error(), Error::BadHandle);
        assert_eq!(pair.sim.outcome(pair.client), Outcome::Blocked);
    }
    pair.reply(4).results();
    assert_eq!(pair.sim.outcome(pair.client).results()[1], tag(4));
    pair.end();
}

#[test]
fn a_parked_call_whose_client_is_gone_is_a_dead_one() {
    let mut pair = Pair::new(4);
    pair.serving();
    let parked = pair.park();
    let calls = pair.calls;
    pair.kill(calls);
    pair.sim.ticks(6);
    let server = pair.server;
    pair.take(server, parked).results();
    assert_eq!(pair.reply(1).error(), Error::PeerDied);
    pair.end();
}
