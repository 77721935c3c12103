//! Several threads at one mapping, or at one table of handles: what each hears when the other is in the middle of it.

use super::space::{AT, Maps, READ, WRITE};
use super::*;
use crate::sim::run::Entry;

/// Pages that are mapped, unmapped and changed in three steps.
const PAGES: u64 = 70;

/// A program with two threads.
struct Two {
    maps: Maps,
    other: User,
}

impl Two {
    fn new() -> Self {
        let mut maps = Maps::new(3, 120, PAGES);
        let other = maps.sim.started(maps.program);
        Self { maps, other }
    }
    fn wanted(&self, rights: u64) -> [u64; 6] {
        [0, raw(self.maps.memory), AT, 0, PAGES, rights]
    }
    /// The first thread's call stays in the middle, after its first step.
    fn begin(&mut self, what: Syscall, arguments: &[u64]) {
        self.maps.sim.schedule(self.maps.user);
        let begun = self.maps.sim.step(self.maps.user, what, arguments);
        assert_eq!(begun, Outcome::Restarts);
    }
    /// It goes on, until it has its answer.
    fn end(&mut self) -> Outcome {
        while self.maps.sim.restarts(self.maps.user) {
            self.maps.sim.again(self.maps.user);
            self.maps.sim.settle();
        }
        self.maps.sim.outcome(self.maps.user)
    }
    /// What the second thread hears.
    fn other(&mut self, what: Syscall, arguments: &[u64]) -> Outcome {
        self.maps.sim.issue(self.other, what, arguments)
    }
}

/// A mapping that is given up half-way can be taken away by another thread. Who is still at it begins anew.
#[test]
fn a_mapping_in_the_making_can_be_unmapped() {
    let mut two = Two::new();
    two.begin(Syscall::map, &two.wanted(READ));
    two.other(Syscall::unmap, &[0, AT, PAGES]).results();
    let again = two.other(Syscall::unmap, &[0, AT, PAGES]);
    assert_eq!(again.error(), Error::NotMapped);
    two.end().results();
    two.maps.unmap(AT, PAGES).results();
    two.maps.sim.tear_down();
}

/// Who maps helps to take apart what another unmaps half-way, and has not mapped it; when it hears so, no CPU can use the pages.
#[test]
fn a_mapping_that_is_unmapped_before_it_is_whole_is_busy() {
    let mut two = Two::new();
    let third = two.maps.sim.started(two.maps.program);
    two.begin(Syscall::map, &two.wanted(READ));
    two.maps.sim.again(two.maps.user);
    let unmap = [0, AT, PAGES];
    let half = two.maps.sim.step(two.other, Syscall::unmap, &unmap);
    assert_eq!(half, Outcome::Restarts);
    let change = [0, AT, PAGES, READ];
    let change = two.maps.sim.issue(third, Syscall::protect, &change);
    assert_eq!(change.error(), Error::Busy);
    let there = two.maps.sim.schedule(third);
    let id = two.maps.sim.cpu(there).token.id();
    assert!(two.maps.sim.machine.touch(id, AT, false).is_some());
    assert_eq!(two.end().error(), Error::Busy);
    assert_eq!(two.maps.sim.machine.touch(id, AT, false), None);
    let gone = two.maps.sim.again(two.other);
    assert_eq!(gone.error(), Error::NotMapped);
    two.maps.sim.tear_down();
}

/// What is unmapped or changed just now is mapped, also for who would map the same there.
#[test]
fn a_mapping_that_another_is_at_is_mapped() {
    for (what, arguments) in [
        (Syscall::unmap, &[0, AT, PAGES][..]),
        (Syscall::protect, &[0, AT, PAGES, READ]),
    ] {
        let mut two = Two::new();
        two.maps.map(AT, 0, PAGES, WRITE).results();
        two.begin(what, arguments);
        let same = two.wanted(WRITE);
        assert_eq!(two.other(Syscall::map, &same).error(), Error::Overlap);
        two.end().results();
        two.maps.sim.tear_down();
    }
}

/// Who asks for other rights than the one who is at it has not mapped it.
#[test]
fn a_mapping_in_the_making_has_the_rights_it_was_begun_with() {
    let mut two = Two::new();
    two.begin(Syscall::map, &two.wanted(READ));
    let more = two.wanted(WRITE);
    assert_eq!(two.other(Syscall::map, &more).error(), Error::Overlap);
    two.end().results();
    assert_eq!(two.maps.touch(AT, true), None);
    two.maps.sim.tear_down();
}

/// Two who change a mapping to the same do it together; who changes it to something else finds it busy, and who unmaps it comes first.
#[test]
fn a_mapping_that_is_being_changed_is_busy() {
    let mut two = Two::new();
    two.maps.map(AT, 0, PAGES, WRITE).results();
    two.begin(Syscall::protect, &[0, AT, PAGES, READ]);
    let back = two.other(Syscall::protect, &[0, AT, PAGES, WRITE]);
    assert_eq!(back.error(), Error::Busy);
    two.other(Syscall::protect, &[0, AT, PAGES, READ]).results();
    assert_eq!(two.maps.touch(AT + (PAGES - 1) * 4096, true), None);
    two.end().results();
    two.begin(Syscall::protect, &[0, AT, PAGES, WRITE]);
    two.other(Syscall::unmap, &[0, AT, PAGES]).results();
    assert_eq!(two.end().error(), Error::NotMapped);
    two.maps.sim.tear_down();
}

/// Two threads that make something at the same time while their table has room for one: it grows for the other.
#[test]
fn a_table_grows_for_whoever_does_not_get_its_last_place() {
    for what in [Syscall::handle_duplicate, Syscall::notification_create] {
        let mut sim = Sim::new(3);
        let (program, one) = sim.alone(60);
        let users = [one, sim.started(program)];
        let named = sim.make(one, Syscall::notification_create, &[]);
        let copy = [raw(named), 0];
        let room = |sim: &Sim| {
            let process = sim.kernel.process(program.slot);
            process.handles.lock(&sim.cpu(0).token).room()
        };
        while room(&sim) != 1 {
            sim.make(one, Syscall::handle_duplicate, &copy);
        }
        let cpus = users.map(|user| {
            sim.prepare(user, what, &copy);
            sim.schedule(user)
        });
        at_the_table(&sim, program, cpus);
        cpus.into_iter().for_each(|cpu| sim.leave(cpu));
        sim.settle();
        for user in users {
            sim.outcome(user).results();
        }
        sim.tear_down();
    }
}

/// Has two of three CPUs enter when the program's table is locked. Both come to wait for the lock, and then get it in turn, as
/// often as they need it.
fn at_the_table(sim: &Sim, program: Program, cpus: [usize; 2]) {
    let third = sim.cpu(3 - cpus[0] - cpus[1]);
    let process = sim.kernel.process(program.slot);
    std::thread::scope(|scope| {
        let held = process.handles.lock(&third.token);
        for cpu in cpus {
            scope.spawn(move || sim.come_in(cpu, Entry::Syscall));
        }
        while cpus.iter().any(|&cpu| sim.cpu(cpu).token.holds_nothing()) {
            std::thread::yield_now();
        }
        drop(held);
    });
}
