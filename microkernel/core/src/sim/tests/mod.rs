//! Directed tests: each says one thing that programs may rely on.

mod authority;
mod badges;
mod bits;
mod carry;
mod contention;
mod death;
mod donation;
mod inspect;
mod meet;
mod park;
mod scarce;
mod schedule;
mod space;
mod trace;

use super::Sim;
use super::program::{Program, handle};
use super::run::{Outcome, User};
use crate::object::thread::State;
use ipc::abi::{Error, Handle, NEVER, Rights, Syscall, Tag};

/// A handle in its register form.
fn raw(named: Handle) -> u64 {
    named.raw().into()
}

/// Words of a message.
const WORDS: [crate::base::regs::Reg; 4] = {
    use crate::base::regs::Reg;
    [Reg::R10, Reg::R8, Reg::R9, Reg::R12]
};

/// What a call has in its registers when it succeeded.
fn tag(op: u16) -> u64 {
    Tag::new(op, 0, 0).raw()
}

/// Two programs and an endpoint that the first serves and the second calls.
struct Pair {
    sim: Sim,
    server: User,
    client: User,
    serves: Program,
    calls: Program,
    /// The server's handle to the endpoint.
    ear: Handle,
    /// The client's.
    mouth: Handle,
}

impl Pair {
    fn new(cpus: usize) -> Self {
        let mut sim = Sim::new(cpus);
        let (serves, server) = sim.alone(60);
        let (calls, client) = sim.alone(60);
        let endpoint = sim.make(sim.root, Syscall::endpoint_create, &[]);
        let whole = Rights::RECEIVE | Rights::MINT | Rights::DUPLICATE | Rights::TRANSFER;
        let ear = sim.give(serves, endpoint, whole);
        let call = Rights::CALL | Rights::DUPLICATE | Rights::TRANSFER;
        let mouth = sim.give(calls, endpoint, call);
        sim.close(sim.root, endpoint);
        Self {
            sim,
            server,
            client,
            serves,
            calls,
            ear,
            mouth,
        }
    }

    /// The client calls.
    fn call(&mut self, op: u16, deadline: u64) -> Outcome {
        let arguments = [raw(self.mouth), tag(op), deadline];
        self.sim.issue(self.client, Syscall::call, &arguments)
    }
    /// The server receives.
    fn receive(&mut self, deadline: u64) -> Outcome {
        let arguments = [raw(self.ear), deadline];
        self.sim.issue(self.server, Syscall::receive, &arguments)
    }
    fn reply(&mut self, op: u16) -> Outcome {
        self.sim.issue(self.server, Syscall::reply, &[tag(op)])
    }
    /// The client is in a call that the server serves.
    fn serving(&mut self) {
        assert_eq!(self.receive(NEVER), Outcome::Blocked);
        assert_eq!(self.call(1, NEVER), Outcome::Blocked);
        assert_eq!(self.sim.state(self.client), State::Called);
    }
    /// Ends both, and sees that nothing is left.
    fn end(mut self) {
        self.sim.tear_down();
    }
    /// Another thread of the client's program, with this priority.
    fn other(&mut self, priority: u64) -> User {
        let (user, thread) = self.sim.held(self.calls);
        let root = self.sim.root;
        let set = [raw(thread), priority, u64::MAX];
        self.sim.issue(root, Syscall::thread_set, &set).results();
        let start = [raw(thread)];
        self.sim
            .issue(root, Syscall::thread_start, &start)
            .results();
        self.sim.close(root, thread);
        user
    }
    /// Ends a program.
    fn kill(&mut self, program: Program) {
        let (root, killed) = (self.sim.root, [raw(program.handle), 3]);
        self.sim
            .issue(root, Syscall::process_kill, &killed)
            .results();
    }
}

#[test]
fn it_starts_and_comes_to_rest() {
    for cpus in [1, 2, 4] {
        let mut sim = Sim::new(cpus);
        sim.ticks(3);
        sim.tear_down();
    }
}
