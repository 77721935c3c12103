//! A call and a receive meet, whichever is first; and what each side hears when the other is gone, late or never comes.

use super::*;
use crate::base::cpu::CpuId;
use crate::hardware::Hardware;

#[test]
fn whoever_is_first() {
    for cpus in [1, 2, 4] {
        for server_first in [true, false] {
            let mut pair = Pair::new(cpus);
            if server_first {
                assert_eq!(pair.receive(NEVER), Outcome::Blocked);
            }
            for (index, reg) in WORDS.into_iter().enumerate() {
                pair.sim
                    .thread(pair.client)
                    .regs
                    .set(reg, 70 + index as u64);
            }
            assert_eq!(pair.call(5, NEVER), Outcome::Blocked);
            if !server_first {
                assert_eq!(pair.sim.state(pair.client), State::Queued);
                pair.receive(NEVER).results();
            }
            assert_eq!(pair.sim.state(pair.client), State::Called);
            assert_eq!(pair.sim.outcome(pair.server).results(), [0, tag(5), 0]);
            let words = WORDS.map(|reg| pair.sim.thread(pair.server).regs.get(reg));
            assert_eq!(words, [70, 71, 72, 73]);
            let regs = &pair.sim.thread(pair.server).regs;
            WORDS.into_iter().for_each(|reg| regs.set(reg, 99));
            pair.reply(6).results();
            let [badge, answer, _] = pair.sim.outcome(pair.client).results();
            assert_eq!((badge, answer), (0, tag(6)));
            assert_eq!(pair.sim.thread(pair.client).regs.get(WORDS[3]), 99);
            assert_eq!(pair.reply(6).error(), Error::NoReply);
            pair.end();
        }
    }
}

/// A call runs a server that waits on the caller's own CPU, and the answer brings it back, with no other CPU asked.
#[test]
fn a_call_takes_its_cpu_along() {
    let mut pair = Pair::new(2);
    assert_eq!(pair.receive(NEVER), Outcome::Blocked);
    let cpu = pair.sim.schedule(pair.client);
    let call = [raw(pair.mouth), tag(1), NEVER];
    pair.sim.step(pair.client, Syscall::call, &call);
    assert_eq!(pair.sim.runs_on(pair.server), Some(cpu));
    let answer = [raw(pair.ear), tag(2), NEVER];
    let waits = pair.sim.step(pair.server, Syscall::reply_receive, &answer);
    assert_eq!(waits, Outcome::Blocked);
    assert_eq!(pair.sim.runs_on(pair.client), Some(cpu));
    assert_eq!(pair.sim.machine.kicks(), 0);
    pair.end();
}

#[test]
fn callers_come_by_priority_and_then_in_turn() {
    let mut pair = Pair::new(8);
    let callers: Vec<_> = [9, 20, 9, 30].map(|priority| pair.other(priority)).into();
    for (op, &caller) in callers.iter().enumerate() {
        let call = [raw(pair.mouth), tag(op as u16), NEVER];
        assert_eq!(
            pair.sim.issue(caller, Syscall::call, &call),
            Outcome::Blocked
        );
    }
    for op in [3, 1, 0, 2] {
        let answer = [raw(pair.ear), tag(0), NEVER];
        let call = pair.sim.issue(pair.server, Syscall::reply_receive, &answer);
        assert_eq!(call.results(), [0, tag(op), 0]);
    }
    pair.end();
}

#[test]
fn a_call_that_is_late_fails_in_the_queue_and_in_service() {
    for received in [false, true] {
        let mut pair = Pair::new(4);
        let deadline = pair.sim.machine.now().0 + 1000;
        if received {
            assert_eq!(pair.receive(NEVER), Outcome::Blocked);
        }
        assert_eq!(pair.call(1, deadline), Outcome::Blocked);
        pair.sim.machine.advance(999);
        pair.sim.settle();
        assert_eq!(pair.sim.outcome(pair.client), Outcome::Blocked);
        pair.sim.machine.advance(1);
        pair.sim.settle();
        assert_eq!(pair.sim.outcome(pair.client).error(), Error::TimedOut);
        if received {
            assert_eq!(pair.reply(1).error(), Error::PeerDied);
            assert_eq!(pair.reply(1).error(), Error::NoReply);
        }
        assert_eq!(pair.receive(0).error(), Error::TimedOut);
        pair.end();
    }
}

/// The deadline of a call goes on when it is received.
#[test]
fn a_call_keeps_its_deadline_when_it_is_received() {
    let mut pair = Pair::new(4);
    let deadline = pair.sim.machine.now().0 + 1000;
    assert_eq!(pair.call(1, deadline), Outcome::Blocked);
    pair.receive(NEVER).results();
    pair.sim.machine.advance(1000);
    pair.sim.settle();
    assert_eq!(pair.sim.outcome(pair.client).error(), Error::TimedOut);
    pair.end();
}

/// Who asks for what is there already goes on at once: it is not switched away from, and no timer is set.
#[test]
fn the_past_is_a_poll() {
    let mut pair = Pair::new(1);
    pair.sim.machine.advance(1000);
    for deadline in [0, 999] {
        pair.polls(deadline);
    }
    assert_eq!(pair.call(2, NEVER), Outcome::Blocked);
    assert_eq!(pair.receive(0).results(), [0, tag(2), 0]);
    pair.end();
}

impl Pair {
    /// Both sides' calls with a deadline that has passed, where nothing waits for them.
    fn polls(&mut self, deadline: u64) {
        let (mouth, ear) = (raw(self.mouth), raw(self.ear));
        let bits = self
            .sim
            .make(self.server, Syscall::notification_create, &[]);
        for (user, what, arguments) in [
            (self.server, Syscall::receive, [ear, deadline, 0]),
            (self.server, Syscall::reply_receive, [ear, tag(0), deadline]),
            (self.server, Syscall::wait, [raw(bits), deadline, 0]),
            (self.client, Syscall::call, [mouth, tag(1), deadline]),
        ] {
            let cpu = self.sim.schedule(user);
            let timer = self.sim.machine.timer(CpuId(cpu as u8));
            let outcome = self.sim.step(user, what, &arguments);
            assert_eq!(outcome.error(), Error::TimedOut, "{what:?}");
            assert_eq!(self.sim.runs_on(user), Some(cpu), "{what:?} blocked");
            let armed = self.sim.machine.timer(CpuId(cpu as u8));
            assert_eq!(armed, timer, "{what:?} set a timer");
        }
        self.sim.close(self.server, bits);
    }
}

/// A client that is gone is no reason for its server to wait, and no answer reaches its next call.
#[test]
fn an_answer_reaches_its_own_call_only() {
    let mut pair = Pair::new(4);
    let deadline = pair.sim.machine.now().0 + 1000;
    assert_eq!(pair.receive(NEVER), Outcome::Blocked);
    assert_eq!(pair.call(1, deadline), Outcome::Blocked);
    pair.sim.machine.advance(1000);
    pair.sim.settle();
    // The same thread waits in another call when the answer to its first comes.
    assert_eq!(pair.call(2, NEVER), Outcome::Blocked);
    let answer = [raw(pair.ear), tag(9), NEVER];
    let next = pair.sim.issue(pair.server, Syscall::reply_receive, &answer);
    assert_eq!(next.results(), [0, tag(2), 0]);
    assert_eq!(pair.sim.state(pair.client), State::Called);
    pair.reply(3).results();
    assert_eq!(pair.sim.outcome(pair.client).results()[1], tag(3));
    pair.end();
}

#[test]
fn a_client_that_is_killed_leaves_no_trace() {
    for received in [false, true] {
        let mut pair = Pair::new(2);
        if received {
            pair.serving();
        } else {
            assert_eq!(pair.call(1, NEVER), Outcome::Blocked);
        }
        let calls = pair.calls;
        pair.kill(calls);
        assert_eq!(pair.sim.outcome(pair.client), Outcome::Ended);
        if received {
            assert_eq!(pair.reply(1).error(), Error::PeerDied);
        }
        assert_eq!(pair.receive(0).error(), Error::TimedOut);
        pair.end();
    }
}

/// In service, waiting for it, or queued with others: callers of a server that dies hear it at once.
#[test]
fn callers_of_a_server_that_dies_fail() {
    for (receives, serves) in [(true, true), (true, false), (false, false)] {
        let mut pair = Pair::new(2);
        let second = pair.other(31);
        if receives {
            assert_eq!(pair.receive(NEVER), Outcome::Blocked);
        }
        if serves || !receives {
            assert_eq!(pair.call(1, NEVER), Outcome::Blocked);
            let call = [raw(pair.mouth), tag(2), NEVER];
            assert_eq!(
                pair.sim.issue(second, Syscall::call, &call),
                Outcome::Blocked
            );
        }
        let program = pair.serves;
        pair.kill(program);
        pair.sim.ticks(6);
        if serves || !receives {
            assert_eq!(pair.sim.outcome(pair.client).error(), Error::PeerDied);
            assert_eq!(pair.sim.outcome(second).error(), Error::PeerDied);
        }
        assert_eq!(pair.call(3, NEVER).error(), Error::PeerDied);
        pair.end();
    }
}

#[test]
fn an_endpoint_dies_with_its_last_ear() {
    let mut pair = Pair::new(2);
    assert_eq!(pair.call(1, NEVER), Outcome::Blocked);
    let copy = [
        raw(pair.ear),
        (Rights::RECEIVE | Rights::TRANSFER).bits().into(),
    ];
    let copy = pair.sim.make(pair.server, Syscall::handle_duplicate, &copy);
    pair.sim.close(pair.server, pair.ear);
    pair.sim.ticks(1);
    assert_eq!(pair.sim.outcome(pair.client), Outcome::Blocked);
    pair.sim.close(pair.server, copy);
    pair.sim.settle();
    assert_eq!(pair.sim.outcome(pair.client).error(), Error::PeerDied);
    assert_eq!(pair.call(2, NEVER).error(), Error::PeerDied);
    pair.end();
}
