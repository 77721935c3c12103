//! Priority follows the calls: a server runs at its caller's, and who waits in a queue raises whom it waits for.

use super::*;
use std::sync::atomic::Ordering::Relaxed;

/// A program whose thread serves an endpoint at a low priority.
struct Stage {
    user: User,
    ear: Handle,
    program: Program,
}

/// Servers in a row, each with a handle to call the next; and their endpoints, as the first program has them.
fn row(sim: &mut Sim, length: usize) -> (Vec<Stage>, Vec<Handle>) {
    let root = sim.root;
    let endpoints: Vec<Handle> = (0..length)
        .map(|_| sim.make(root, Syscall::endpoint_create, &[]))
        .collect();
    let stages = endpoints
        .iter()
        .map(|&endpoint| {
            let program = sim.program(20);
            let (user, thread) = sim.held(program);
            let set = [raw(thread), 3, u64::MAX];
            sim.issue(root, Syscall::thread_set, &set).results();
            sim.issue(root, Syscall::thread_start, &[raw(thread)])
                .results();
            let ear = sim.give(program, endpoint, Rights::RECEIVE);
            Stage { user, ear, program }
        })
        .collect();
    (stages, endpoints)
}

fn priority(sim: &Sim, user: User) -> u8 {
    sim.thread(user).priority.load(Relaxed)
}

impl Pair {
    fn of_server(&self) -> u8 {
        priority(&self.sim, self.server)
    }
}

#[test]
fn a_server_has_its_callers_priority_while_it_serves() {
    for server_first in [true, false] {
        let mut pair = Pair::new(8);
        let set = [0, 4, u64::MAX];
        pair.sim
            .issue(pair.server, Syscall::thread_set, &set)
            .results();
        let low = pair.other(2);
        if server_first {
            assert_eq!(pair.receive(NEVER), Outcome::Blocked);
        }
        let call = [raw(pair.mouth), tag(1), NEVER];
        assert_eq!(pair.sim.issue(low, Syscall::call, &call), Outcome::Blocked);
        if !server_first {
            pair.receive(NEVER).results();
        }
        assert_eq!(pair.of_server(), 4, "never less than its own");
        assert_eq!(pair.call(2, NEVER), Outcome::Blocked);
        assert_eq!(pair.of_server(), 31, "raised by who waits");
        pair.reply(0).results();
        assert_eq!(pair.of_server(), 31, "who waits still does");
        pair.receive(NEVER).results();
        assert_eq!(pair.of_server(), 31);
        pair.reply(0).results();
        assert_eq!(pair.of_server(), 4);
        pair.end();
    }
}

/// Who waits at the first of a row raises all that the first waits for, eight deep.
#[test]
fn donation_is_transitive_and_eight_deep() {
    let mut sim = Sim::new(8);
    let (stages, endpoints) = row(&mut sim, 10);
    let root = sim.root;
    // The last serves nobody; each other one is in a call to the next.
    for index in 0..9 {
        let mouth = sim.give(stages[index].program, endpoints[index + 1], Rights::CALL);
        let receive = [raw(stages[index + 1].ear), NEVER];
        sim.issue(stages[index + 1].user, Syscall::receive, &receive);
        let call = [raw(mouth), tag(1), NEVER];
        let waits = sim.issue(stages[index].user, Syscall::call, &call);
        assert_eq!(waits, Outcome::Blocked);
    }
    // One that receives from the first endpoint, so that who calls it waits for that one.
    let program = stages[0].program;
    let (front, thread) = sim.held(program);
    let set = [raw(thread), 3, u64::MAX];
    sim.issue(root, Syscall::thread_set, &set).results();
    sim.issue(root, Syscall::thread_start, &[raw(thread)])
        .results();
    let receive = [raw(stages[0].ear), 0];
    assert_eq!(
        sim.issue(front, Syscall::receive, &receive).error(),
        Error::TimedOut
    );
    let onward = sim.give(program, endpoints[1], Rights::CALL);
    assert_eq!(
        sim.issue(front, Syscall::call, &[raw(onward), tag(2), NEVER]),
        Outcome::Blocked
    );
    let call = [raw(endpoints[0]), tag(3), 1 << 40];
    assert_eq!(sim.issue(root, Syscall::call, &call), Outcome::Blocked);
    assert_eq!(priority(&sim, front), 31);
    let raised: Vec<u8> = stages[1..]
        .iter()
        .map(|stage| priority(&sim, stage.user))
        .collect();
    assert_eq!(raised, [31, 31, 31, 31, 31, 31, 31, 3, 3]);
    sim.machine.advance(1 << 41);
    sim.settle();
    assert_eq!(sim.outcome(root).error(), Error::TimedOut);
    sim.tear_down();
}

/// The priority that a queued caller lent is not kept when it has gone.
#[test]
fn what_was_lent_ends_with_the_wait() {
    let mut pair = Pair::new(8);
    let set = [0, 4, u64::MAX];
    pair.sim
        .issue(pair.server, Syscall::thread_set, &set)
        .results();
    assert_eq!(pair.receive(0).error(), Error::TimedOut);
    assert_eq!(pair.call(1, 1 << 30), Outcome::Blocked);
    assert_eq!(pair.of_server(), 31);
    pair.sim.machine.advance(1 << 31);
    pair.sim.settle();
    assert_eq!(pair.receive(NEVER), Outcome::Blocked);
    assert_eq!(pair.of_server(), 4);
    pair.end();
}

/// Nor by a server that polls: it goes on at its own priority, and gives way to who is above that.
#[test]
fn a_poll_ends_what_was_lent() {
    let mut pair = Pair::new(1);
    let between = pair.other(10);
    assert_eq!(pair.receive(0).error(), Error::TimedOut);
    assert_eq!(pair.call(1, 1 << 30), Outcome::Blocked);
    let set = [0, 4, u64::MAX];
    pair.sim
        .issue(pair.server, Syscall::thread_set, &set)
        .results();
    pair.sim.machine.advance(1 << 31);
    pair.sim.settle();
    for high in [pair.client, pair.sim.root] {
        pair.sim.issue(high, Syscall::sleep, &[1 << 50]);
    }
    assert_eq!(pair.of_server(), 31);
    let poll = [raw(pair.ear), 0];
    let polled = pair.sim.step(pair.server, Syscall::receive, &poll);
    assert_eq!(polled.error(), Error::TimedOut);
    assert_eq!(pair.of_server(), 4);
    assert_eq!(pair.sim.runs_on(between), Some(0));
    pair.end();
}

/// A server that falls back to its own priority gives way at once to who is above it.
#[test]
fn a_server_that_is_done_gives_way() {
    let mut pair = Pair::new(1);
    let between = pair.other(10);
    let set = [0, 4, u64::MAX];
    pair.serving();
    pair.sim
        .issue(pair.server, Syscall::thread_set, &set)
        .results();
    assert_eq!(pair.of_server(), 31);
    // The first program sleeps, and the client dies: the server, with nothing lent any more, meets the one between.
    pair.sim.issue(pair.sim.root, Syscall::sleep, &[1 << 50]);
    pair.sim.schedule(pair.server);
    pair.sim.step(pair.server, Syscall::reply_park, &[]);
    assert_eq!(pair.of_server(), 4);
    assert_eq!(pair.sim.runs_on(between), Some(0));
    pair.end();
}
