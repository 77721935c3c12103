//! Notifications: bits are taken once, by who waits or by the thread they are bound to; and what time does to them.

use super::*;
use crate::hardware::Hardware;
use ipc::abi::Delivery;

/// A program with a thread and a notification, and the first program's handle to that.
struct Bits {
    sim: Sim,
    user: User,
    program: Program,
    own: Handle,
    theirs: Handle,
}

impl Bits {
    fn new() -> Self {
        let mut sim = Sim::new(4);
        let (program, user) = sim.alone(60);
        let theirs = sim.make(sim.root, Syscall::notification_create, &[]);
        let rights = Rights::WAIT | Rights::SIGNAL | Rights::DUPLICATE;
        let own = sim.give(program, theirs, rights);
        Self {
            sim,
            user,
            program,
            own,
            theirs,
        }
    }
    fn signal(&mut self, bits: u64) {
        let signal = [raw(self.theirs), bits];
        self.sim
            .issue(self.sim.root, Syscall::signal, &signal)
            .results();
    }
    fn wait(&mut self, deadline: u64) -> Outcome {
        self.sim
            .issue(self.user, Syscall::wait, &[raw(self.own), deadline])
    }
    fn bind(&mut self) {
        // The thread's own handle, which its maker has.
        let thread = self.thread();
        let bind = [raw(self.own), raw(thread)];
        self.sim.issue(self.user, Syscall::bind, &bind).results();
        self.sim.close(self.user, thread);
    }
    /// A handle of the program to its own thread.
    fn thread(&mut self) -> Handle {
        use crate::handles::Grant;
        use crate::object::Object;
        let sim = &self.sim;
        let reference = sim.kernel.pools.threads.reference(self.user.0.0).unwrap();
        let grant = Grant {
            object: Object::Thread(reference),
            rights: super::super::build::OWN,
        };
        sim.kernel.retain(sim.cpu(0), &grant);
        let process = sim.kernel.process(self.program.slot);
        sim.kernel.insert(sim.cpu(0), process, grant).unwrap()
    }
    fn receive(&mut self, deadline: u64) -> Outcome {
        self.sim.issue(self.user, Syscall::receive, &[0, deadline])
    }
}

#[test]
fn bits_add_up_and_are_taken_once() {
    let mut it = Bits::new();
    it.signal(1);
    it.signal(4);
    assert_eq!(it.wait(NEVER).results()[0], 5);
    assert_eq!(it.wait(0).error(), Error::TimedOut);
    assert_eq!(it.wait(NEVER), Outcome::Blocked);
    it.signal(0);
    assert_eq!(it.sim.outcome(it.user), Outcome::Blocked);
    it.signal(2);
    assert_eq!(it.sim.outcome(it.user).results()[0], 2);
    it.sim.tear_down();
}

#[test]
fn a_wait_ends_at_its_deadline_and_not_before() {
    let mut it = Bits::new();
    let deadline = it.sim.machine.now().0 + 500;
    assert_eq!(it.wait(deadline), Outcome::Blocked);
    it.sim.machine.advance(499);
    it.sim.settle();
    assert_eq!(it.sim.outcome(it.user), Outcome::Blocked);
    it.sim.machine.advance(1);
    it.sim.settle();
    assert_eq!(it.sim.outcome(it.user).error(), Error::TimedOut);
    // Bits that come in time end the wait, and its deadline with it.
    let deadline = it.sim.machine.now().0 + 500;
    assert_eq!(it.wait(deadline), Outcome::Blocked);
    it.signal(8);
    assert_eq!(it.sim.outcome(it.user).results()[0], 8);
    assert_eq!(it.wait(NEVER), Outcome::Blocked);
    it.sim.machine.advance(1 << 30);
    it.sim.settle();
    assert_eq!(it.sim.outcome(it.user), Outcome::Blocked);
    it.sim.tear_down();
}

#[test]
fn bound_bits_come_where_calls_do() {
    let mut it = Bits::new();
    assert_eq!(
        it.receive(NEVER).error(),
        Error::BadHandle,
        "nothing is bound"
    );
    it.bind();
    let told = |bits| [bits, 0, Delivery::Notification as u64];
    assert_eq!(it.receive(NEVER), Outcome::Blocked);
    it.signal(3);
    assert_eq!(it.sim.outcome(it.user).results(), told(3));
    it.signal(4);
    assert_eq!(it.receive(NEVER).results(), told(4));
    let endpoint = it.sim.make(it.user, Syscall::endpoint_create, &[]);
    let receive = [raw(endpoint), NEVER];
    assert_eq!(
        it.sim.issue(it.user, Syscall::receive, &receive),
        Outcome::Blocked
    );
    it.signal(16);
    assert_eq!(it.sim.outcome(it.user).results(), told(16));
    it.sim.tear_down();
}

/// A bond that is made late still delivers, and one that is undone leaves nobody waiting for it.
#[test]
fn a_bond_is_made_and_undone_under_a_thread_that_waits() {
    let mut it = Bits::new();
    let thread = it.thread();
    let endpoint = it.sim.make(it.user, Syscall::endpoint_create, &[]);
    let helper = it.sim.started(it.program);
    it.signal(7);
    let receive = [raw(endpoint), NEVER];
    assert_eq!(
        it.sim.issue(it.user, Syscall::receive, &receive),
        Outcome::Blocked
    );
    let bind = [raw(it.own), raw(thread)];
    it.sim.issue(helper, Syscall::bind, &bind).results();
    assert_eq!(it.sim.outcome(it.user).results()[0], 7);
    assert_eq!(
        it.sim.issue(helper, Syscall::bind, &bind).error(),
        Error::Busy
    );
    assert_eq!(it.receive(NEVER), Outcome::Blocked);
    it.sim
        .issue(helper, Syscall::bind, &[raw(it.own), 0])
        .results();
    assert_eq!(it.sim.outcome(it.user).error(), Error::BadHandle);
    it.sim.tear_down();
}

#[test]
fn the_dead_are_not_bound() {
    let mut it = Bits::new();
    let thread = it.thread();
    let helper = it.sim.started(it.program);
    it.bind();
    it.sim.issue(it.user, Syscall::thread_exit, &[]);
    it.sim.ticks(2);
    let bind = [raw(it.own), raw(thread)];
    assert_eq!(
        it.sim.issue(helper, Syscall::bind, &bind).error(),
        Error::WrongState
    );
    it.signal(1);
    let wait = [raw(it.own), NEVER];
    assert_eq!(it.sim.issue(helper, Syscall::wait, &wait).results()[0], 1);
    it.sim.tear_down();
}

#[test]
fn a_notification_without_handles_lets_its_waiters_go() {
    let mut it = Bits::new();
    let helper = it.sim.started(it.program);
    assert_eq!(it.wait(NEVER), Outcome::Blocked);
    it.sim.close(it.sim.root, it.theirs);
    it.sim.close(helper, it.own);
    it.sim.ticks(3);
    assert_eq!(it.sim.outcome(it.user).error(), Error::BadHandle);
    it.sim.tear_down();
}

#[test]
fn a_timer_signals_once_at_its_time() {
    let mut it = Bits::new();
    let now = it.sim.machine.now().0;
    let set = |it: &mut Bits, bits: u64, deadline: u64| {
        let set = [raw(it.own), bits, deadline];
        it.sim.issue(it.user, Syscall::timer_set, &set).results();
    };
    // The last one set counts, from whichever CPU.
    set(&mut it, 1, now + 100);
    set(&mut it, 2, now + 1000);
    it.sim.machine.advance(999);
    it.sim.settle();
    assert_eq!(it.wait(0).error(), Error::TimedOut);
    it.sim.machine.advance(1);
    it.sim.settle();
    assert_eq!(it.wait(0).results()[0], 2);
    it.sim.machine.advance(1 << 20);
    it.sim.settle();
    assert_eq!(it.wait(0).error(), Error::TimedOut);
    set(&mut it, 4, now + (1 << 21));
    set(&mut it, 4, NEVER);
    it.sim.machine.advance(1 << 22);
    it.sim.settle();
    assert_eq!(it.wait(0).error(), Error::TimedOut);
    set(&mut it, 8, 0);
    assert_eq!(it.wait(0).results()[0], 8, "the past is now");
    it.sim.tear_down();
}

/// Many deadlines at one time are served in as many interrupts as it takes.
#[test]
fn many_deadlines_at_once() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let deadline = sim.machine.now().0 + 1_000_000_000;
    let all: Vec<Handle> = (0..8)
        .map(|_| sim.make(root, Syscall::notification_create, &[]))
        .collect();
    let program = sim.program(60);
    let users: Vec<User> = (0..12).map(|_| sim.started(program)).collect();
    for &user in &users {
        assert_eq!(
            sim.issue(user, Syscall::sleep, &[deadline]),
            Outcome::Blocked
        );
    }
    for (bit, &timer) in all.iter().enumerate() {
        let set = [raw(timer), 1 << bit, deadline];
        sim.issue(root, Syscall::timer_set, &set).results();
    }
    sim.machine.advance(1_000_000_000);
    sim.settle();
    for &user in &users {
        sim.outcome(user).results();
    }
    for (bit, &timer) in all.iter().enumerate() {
        assert_eq!(
            sim.issue(root, Syscall::wait, &[raw(timer), 0]).results()[0],
            1 << bit
        );
    }
    sim.tear_down();
}
