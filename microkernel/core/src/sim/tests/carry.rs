//! What a message carries: payload, and handles that are copied or moved, with their rights or less, all or none.

use super::*;
use crate::base::cpu::CpuId;
use crate::object::Object;
use ipc::abi::message::PAYLOAD_MAX;

/// A message with this many handles and bytes.
fn with(bytes: usize, handles: usize) -> u64 {
    Tag::new(7, bytes, handles).raw()
}

impl Pair {
    fn send(&mut self, bytes: usize, handles: usize) -> Outcome {
        let call = [raw(self.mouth), with(bytes, handles), NEVER];
        self.sim.issue(self.client, Syscall::call, &call)
    }
    /// A notification of the client's.
    fn thing(&mut self) -> Handle {
        self.sim
            .make(self.client, Syscall::notification_create, &[])
    }
    fn knows(&mut self, user: User, named: Handle) -> bool {
        let info = self.sim.issue(user, Syscall::handle_info, &[raw(named)]);
        matches!(info, Outcome::Returned(Ok(_)))
    }
}

const ALL: Rights = Rights::all();

#[test]
fn payload_is_copied_both_ways_and_no_further() {
    for server_first in [true, false] {
        let mut pair = Pair::new(2);
        for word in 0..PAYLOAD_MAX / 8 {
            pair.sim.write(pair.client, word * 8, word as u64 + 1);
            pair.sim.write(pair.server, word * 8, 0xaa);
        }
        if server_first {
            assert_eq!(pair.receive(NEVER), Outcome::Blocked);
        }
        pair.send(24, 0);
        if !server_first {
            pair.receive(NEVER).results();
        }
        assert_eq!(pair.sim.outcome(pair.server).results()[1], with(24, 0));
        let seen: Vec<_> = (0..4)
            .map(|word| pair.sim.read(pair.server, word * 8))
            .collect();
        assert_eq!(seen, [1, 2, 3, 0xaa]);
        let answer = [with(PAYLOAD_MAX, 0)];
        pair.sim
            .issue(pair.server, Syscall::reply, &answer)
            .results();
        let last = pair.sim.read(pair.client, PAYLOAD_MAX - 8);
        assert_eq!((pair.sim.read(pair.client, 24), last), (0xaa, 0xaa));
        let too_long = [raw(pair.mouth), with(PAYLOAD_MAX + 1, 0), NEVER];
        let refused = pair.sim.issue(pair.client, Syscall::call, &too_long);
        assert_eq!(refused.error(), Error::TooLarge);
        assert_eq!(pair.send(0, 5).error(), Error::TooLarge);
        pair.end();
    }
}

#[test]
fn a_copied_handle_stays_and_a_moved_one_goes() {
    for (server_first, moves) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut pair = Pair::new(2);
        let thing = pair.thing();
        pair.sim
            .attach(pair.client, 0, thing, Rights::SIGNAL, moves);
        if server_first {
            assert_eq!(pair.receive(NEVER), Outcome::Blocked);
        }
        pair.send(0, 1);
        if !server_first {
            pair.receive(NEVER).results();
        }
        let (there, rights) = pair.sim.attached(pair.server, 0);
        assert_eq!(rights, Rights::SIGNAL, "rights only shrink");
        let info = pair
            .sim
            .issue(pair.server, Syscall::handle_info, &[raw(there)]);
        assert_eq!(info.results()[1], u64::from(Rights::SIGNAL.bits()));
        // A server gives it back with its answer, as far as it may: without TRANSFER it may not.
        pair.sim.attach(pair.server, 0, there, ALL, true);
        let answer = [with(0, 1)];
        let refused = pair.sim.issue(pair.server, Syscall::reply, &answer);
        assert_eq!(refused.error(), Error::MissingRight);
        pair.reply(0).results();
        let client = pair.client;
        assert_eq!(pair.knows(client, thing), !moves);
        pair.end();
    }
}

#[test]
fn handles_go_all_or_none() {
    for server_first in [true, false] {
        let mut pair = Pair::new(2);
        let (first, gone) = (pair.thing(), pair.thing());
        pair.sim.close(pair.client, gone);
        pair.sim.attach(pair.client, 0, first, ALL, true);
        pair.sim.attach(pair.client, 1, gone, ALL, true);
        if server_first {
            assert_eq!(pair.receive(NEVER), Outcome::Blocked);
        }
        assert_eq!(pair.send(0, 2).error(), Error::BadHandle);
        let client = pair.client;
        assert!(pair.knows(client, first));
        // The same handle cannot move twice.
        pair.sim.attach(pair.client, 1, first, ALL, true);
        assert_eq!(pair.send(0, 2).error(), Error::BadHandle);
        assert!(pair.knows(client, first));
        if server_first {
            assert_eq!(pair.sim.outcome(pair.server), Outcome::Blocked);
        }
        pair.end();
    }
}

#[test]
fn a_queued_message_can_fail_when_it_is_taken() {
    let mut pair = Pair::new(4);
    let thing = pair.thing();
    pair.sim.attach(pair.client, 0, thing, ALL, true);
    assert_eq!(pair.send(0, 1), Outcome::Blocked);
    // Another thread of the client closes what the message was to carry.
    let other = pair.other(31);
    pair.sim.close(other, thing);
    assert_eq!(pair.receive(0).error(), Error::TimedOut);
    assert_eq!(pair.sim.outcome(pair.client).error(), Error::BadHandle);
    pair.end();
}

/// Fills a table to its last place.
fn fill(pair: &mut Pair, user: User) -> Handle {
    let named = pair.sim.make(user, Syscall::notification_create, &[]);
    let rights = u64::from((Rights::SIGNAL | Rights::DUPLICATE).bits());
    loop {
        let copy = pair
            .sim
            .issue(user, Syscall::handle_duplicate, &[raw(named), rights]);
        match copy {
            Outcome::Returned(Ok(_)) => {}
            full => {
                assert_eq!(full.error(), Error::LimitReached);
                return named;
            }
        }
    }
}

#[test]
fn a_full_table_refuses_and_nothing_is_lost() {
    let mut pair = Pair::new(4);
    let thing = pair.thing();
    let (client, server) = (pair.client, pair.server);
    let extra = fill(&mut pair, server);
    pair.sim.attach(client, 0, thing, ALL, true);
    assert_eq!(pair.send(0, 1), Outcome::Blocked);
    assert_eq!(pair.receive(0).error(), Error::TimedOut);
    assert_eq!(pair.sim.outcome(client).error(), Error::LimitReached);
    assert!(pair.knows(client, thing));
    assert_eq!(pair.receive(1 << 40), Outcome::Blocked);
    assert_eq!(pair.send(0, 1).error(), Error::LimitReached);
    assert!(pair.knows(client, thing));
    assert_eq!(
        pair.sim.outcome(server),
        Outcome::Blocked,
        "it goes on waiting"
    );
    pair.sim.machine.advance(1 << 40);
    pair.sim.settle();
    // With one place free it goes, and there is none to make anything in.
    pair.sim.close(server, extra);
    assert_eq!(pair.receive(NEVER), Outcome::Blocked);
    assert_eq!(pair.send(0, 1), Outcome::Blocked);
    for what in [Syscall::endpoint_create, Syscall::notification_create] {
        let full = pair.sim.issue(server, what, &[]);
        assert_eq!(full.error(), Error::LimitReached);
    }
    assert_eq!(
        pair.sim.issue(server, Syscall::reply_park, &[]).error(),
        Error::LimitReached
    );
    pair.reply(0).results();
    pair.end();
}

#[test]
fn an_ear_that_moves_without_its_right_is_closed() {
    for through_message in [true, false] {
        let mut pair = Pair::new(4);
        let own = pair.sim.make(pair.client, Syscall::endpoint_create, &[]);
        let there = if through_message {
            pair.sim.attach(pair.client, 0, own, Rights::CALL, true);
            assert_eq!(pair.receive(NEVER), Outcome::Blocked);
            assert_eq!(pair.send(0, 1), Outcome::Blocked);
            pair.reply(0).results();
            pair.sim.attached(pair.server, 0).0
        } else {
            let serves = pair.serves;
            pair.sim
                .give(pair.calls, serves.handle, super::super::build::OWN);
            let process = pair.sim.kernel.process_of(pair.sim.thread(pair.client));
            let table = process.handles.lock(&pair.sim.cpu(0).token);
            let grants = table.grants(&pair.sim.kernel.pools.chunks);
            drop(table);
            let (named, _) = grants
                .into_iter()
                .find(|(_, grant)| matches!(grant.object, Object::Process(_)))
                .unwrap();
            let given = [raw(named), raw(own), Rights::CALL.bits().into()];
            pair.sim.make(pair.client, Syscall::handle_give, &given)
        };
        let call = [raw(there), tag(1), NEVER];
        let dead = pair.sim.issue(pair.server, Syscall::call, &call);
        assert_eq!(dead.error(), Error::PeerDied);
        pair.end();
    }
}

/// Two threads with one page as their buffer: what one sends the other has already.
#[test]
fn one_buffer_for_two_threads_is_no_copy() {
    let mut pair = Pair::new(4);
    let root = pair.sim.root;
    let process = raw(pair.serves.handle);
    let buffer = pair
        .sim
        .make(root, Syscall::memory_create, &[process, 1, 0]);
    let users: Vec<User> = (0..2)
        .map(|_| {
            let made = [
                process,
                super::super::build::CODE,
                0x1000,
                0,
                0,
                raw(buffer),
            ];
            let made = pair.sim.make(root, Syscall::thread_create, &made);
            let Object::Thread(reference) = pair.sim.object(root, made) else {
                panic!("no thread");
            };
            pair.sim
                .issue(root, Syscall::thread_start, &[raw(made)])
                .results();
            User(crate::object::ThreadId(reference.index()))
        })
        .collect();
    let mouth = [raw(pair.ear), 5, Rights::CALL.bits().into()];
    let mouth = pair.sim.make(pair.server, Syscall::handle_mint, &mouth);
    pair.sim.write(users[0], 8, 42);
    let receive = [raw(pair.ear), NEVER];
    assert_eq!(
        pair.sim.issue(users[1], Syscall::receive, &receive),
        Outcome::Blocked
    );
    let call = [raw(mouth), with(16, 0), NEVER];
    assert_eq!(
        pair.sim.issue(users[0], Syscall::call, &call),
        Outcome::Blocked
    );
    assert_eq!(pair.sim.outcome(users[1]).results(), [5, with(16, 0), 0]);
    assert_eq!(pair.sim.read(users[1], 8), 42);
    pair.end();
}

#[test]
fn a_server_that_was_woken_for_nothing_receives_again() {
    let mut pair = Pair::new(2);
    assert_eq!(pair.receive(NEVER), Outcome::Blocked);
    let (sim, server) = (&mut pair.sim, pair.server);
    // What a call does whose handles find that the room made for them is taken.
    sim.machine.play(CpuId(0));
    let (cpu, seen) = (sim.cpu(0), sim.thread(server).status());
    sim.kernel.entered(cpu);
    assert!(sim.thread(server).claim(seen));
    sim.kernel.unlink(cpu, server.0, State::Receiving);
    sim.kernel.again(cpu, server.0);
    sim.leave(0);
    sim.settle();
    assert_eq!(sim.outcome(server), Outcome::Restarts);
    assert_eq!(sim.again(server), Outcome::Blocked);
    assert_eq!(pair.call(9, NEVER), Outcome::Blocked);
    assert_eq!(pair.sim.outcome(server).results()[1], tag(9));
    pair.reply(1).results();
    pair.end();
}
