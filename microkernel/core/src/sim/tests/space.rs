//! Memory objects and mappings: made and taken apart in steps, paid for by the page, and gone only when no CPU can use them.

use super::*;
use crate::hardware::PhysMemory;
use crate::sim::run::Entry;
use std::sync::atomic::Ordering::Relaxed;

/// Where most is mapped: 40 pages from here need two tables of pages.
pub(super) const AT: u64 = 0x1e_8000;
pub(super) const READ: u64 = Rights::READ.bits() as u64;
pub(super) const WRITE: u64 = Rights::READ.bits() as u64 | Rights::WRITE.bits() as u64;
const EXECUTE: u64 = Rights::EXECUTE.bits() as u64;

/// A program with a thread, and a memory object.
pub(super) struct Maps {
    pub(super) sim: Sim,
    pub(super) program: Program,
    pub(super) user: User,
    pub(super) memory: Handle,
}

impl Maps {
    pub(super) fn new(cpus: usize, quota: u64, pages: u64) -> Self {
        let mut sim = Sim::new(cpus);
        let (program, user) = sim.alone(quota);
        let memory = sim.make(user, Syscall::memory_create, &[0, pages, 0]);
        Self {
            sim,
            program,
            user,
            memory,
        }
    }
    pub(super) fn map(&mut self, address: u64, first: u64, pages: u64, rights: u64) -> Outcome {
        let map = [0, raw(self.memory), address, first, pages, rights];
        self.sim.issue(self.user, Syscall::map, &map)
    }
    pub(super) fn unmap(&mut self, address: u64, pages: u64) -> Outcome {
        self.sim
            .issue(self.user, Syscall::unmap, &[0, address, pages])
    }
    fn pages(&self) -> u64 {
        self.sim
            .kernel
            .process(self.program.slot)
            .pages
            .load(Relaxed)
    }
    /// What the thread's own instruction finds there.
    pub(super) fn touch(&mut self, address: u64, write: bool) -> Option<u64> {
        let cpu = self.sim.schedule(self.user);
        let id = self.sim.cpu(cpu).token.id();
        let at = self.sim.machine.touch(id, address, write)?;
        Some(self.sim.machine.read(at))
    }
}

#[test]
fn a_mapping_shows_its_pages_zeroed_and_only_for_what_it_is() {
    let mut maps = Maps::new(2, 120, 40);
    maps.map(AT, 0, 40, READ).results();
    for page in [0, 23, 24, 39] {
        assert_eq!(maps.touch(AT + page * 4096, false), Some(0));
        assert_eq!(maps.touch(AT + page * 4096, true), None);
    }
    assert_eq!(maps.touch(AT + 40 * 4096, false), None);
    // The same pages elsewhere, for writing: both show the same.
    maps.map(0x4000_0000, 3, 2, WRITE).results();
    let cpu = maps.sim.schedule(maps.user);
    let id = maps.sim.cpu(cpu).token.id();
    let at = maps.sim.machine.touch(id, 0x4000_0000, true).unwrap();
    maps.sim.machine.write(at, 77);
    assert_eq!(maps.touch(AT + 3 * 4096, false), Some(77));
    maps.sim.tear_down();
}

#[test]
fn what_may_not_be_mapped_is_refused() {
    let mut maps = Maps::new(2, 120, 4);
    for (address, first, pages, rights, error) in [
        (AT + 1, 0, 1, READ, Error::Misaligned),
        (0, 0, 1, READ, Error::BadAddress),
        (0x8000_0000_0000, 0, 1, READ, Error::BadAddress),
        (AT, 0, 0, READ, Error::BadArgument),
        (AT, 1, 4, READ, Error::BadArgument),
        (AT, u64::MAX, 2, READ, Error::BadArgument),
        (AT, 0, 1, 0, Error::BadArgument),
        (AT, 0, 1, WRITE | EXECUTE, Error::BadArgument),
        (ipc::abi::layout::INFO_PAGE, 0, 1, READ, Error::Overlap),
    ] {
        let outcome = maps.map(address, first, pages, rights);
        assert_eq!(
            outcome.error(),
            error,
            "{address:x} {first} {pages} {rights:x}"
        );
    }
    maps.map(AT, 0, 2, READ).results();
    assert_eq!(maps.map(AT + 4096, 0, 1, READ).error(), Error::Overlap);
    assert_eq!(
        maps.unmap(AT, 1).error(),
        Error::NotMapped,
        "the whole or nothing"
    );
    maps.unmap(AT, 2).results();
    assert_eq!(maps.unmap(AT, 2).error(), Error::NotMapped);
    // A handle for reading maps for reading only, and does not become more by `protect`.
    let copy = [raw(maps.memory), READ];
    maps.memory = maps.sim.make(maps.user, Syscall::handle_duplicate, &copy);
    assert_eq!(maps.map(AT, 0, 2, WRITE).error(), Error::MissingRight);
    maps.map(AT, 0, 2, READ).results();
    let more = maps
        .sim
        .issue(maps.user, Syscall::protect, &[0, AT, 2, WRITE]);
    assert_eq!(more.error(), Error::MissingRight);
    maps.sim.tear_down();
}

/// Whatever the quota is, mapping either succeeds or leaves no page charged and nothing mapped.
#[test]
fn a_mapping_that_runs_out_is_taken_back_whole() {
    let (mut failed, mut done) = (0, 0);
    for spare in 0..6 {
        let mut maps = Maps::new(4, 60, 40);
        let fill = 60 - maps.pages() - spare;
        // One page of a list node goes with it.
        if fill > 1 {
            maps.sim
                .make(maps.user, Syscall::memory_create, &[0, fill - 1, 0]);
        }
        let before = maps.pages();
        assert_eq!(before, 60 - spare);
        match maps.map(AT, 0, 40, WRITE) {
            Outcome::Returned(Ok(_)) => {
                done += 1;
                assert!(maps.touch(AT, true).is_some());
                maps.unmap(AT, 40).results();
            }
            other => {
                failed += 1;
                assert_eq!(other.error(), Error::QuotaExceeded);
                assert_eq!(maps.touch(AT, false), None);
            }
        }
        assert_eq!(maps.pages(), before);
        maps.sim.tear_down();
    }
    assert!(failed > 1 && done > 1, "{failed} {done}");
}

/// While another CPU may still use the pages, the one who unmapped them waits; and the pages are not reused.
#[test]
fn unmapping_waits_for_every_cpu_that_may_see_it() {
    for kill in [false, true] {
        let mut maps = Maps::new(3, 120, 2);
        let other = maps.sim.started(maps.program);
        maps.map(AT, 0, 2, WRITE).results();
        let there = maps.sim.schedule(other);
        let id = maps.sim.cpu(there).token.id();
        let page = maps.sim.machine.touch(id, AT, true).unwrap();
        // The mapping is all that keeps the object.
        maps.sim.close(maps.user, maps.memory);
        let here = maps.sim.schedule(maps.user);
        let waits = maps.sim.step(maps.user, Syscall::unmap, &[0, AT, 2]);
        assert_eq!(waits, Outcome::Blocked);
        assert_eq!(
            maps.sim.machine.touch(id, AT, true),
            Some(page),
            "until it flushes"
        );
        for _ in 0..6 {
            // The laws look at what that CPU still reaches.
            maps.sim.enter(here, Entry::Tick);
        }
        if kill {
            let killed = [raw(maps.program.handle), 1];
            maps.sim
                .issue(maps.sim.root, Syscall::process_kill, &killed)
                .results();
        } else {
            maps.sim.deliver(there);
            maps.sim.settle();
            maps.sim.outcome(maps.user).results();
            assert_eq!(maps.sim.machine.touch(id, AT, false), None);
        }
        maps.sim.tear_down();
    }
}

/// Whom all have flushed for does not wait behind one for whom somebody has not.
#[test]
fn each_unmapping_waits_for_its_own_cpus() {
    let mut maps = Maps::new(5, 120, 2);
    let (program, user) = maps.sim.alone(120);
    let (slow, quick) = (maps.sim.started(maps.program), maps.sim.started(program));
    let memory = maps.sim.make(user, Syscall::memory_create, &[0, 2, 0]);
    maps.map(AT, 0, 2, WRITE).results();
    maps.sim
        .issue(user, Syscall::map, &[0, raw(memory), AT, 0, 2, WRITE])
        .results();
    let (slow, quick) = (maps.sim.schedule(slow), maps.sim.schedule(quick));
    for waits in [maps.user, user] {
        let waits = maps.sim.step(waits, Syscall::unmap, &[0, AT, 2]);
        assert_eq!(waits, Outcome::Blocked);
    }
    assert!(maps.sim.deliver(quick));
    maps.sim.outcome(user).results();
    assert_eq!(maps.sim.outcome(maps.user), Outcome::Blocked);
    assert!(maps.sim.deliver(slow));
    maps.sim.outcome(maps.user).results();
    maps.sim.tear_down();
}

/// Alone on its CPU nobody needs to be asked.
#[test]
fn unmapping_alone_does_not_wait() {
    let mut maps = Maps::new(2, 120, 2);
    maps.map(AT, 0, 2, WRITE).results();
    assert!(maps.touch(AT, true).is_some());
    maps.sim.schedule(maps.user);
    maps.sim
        .step(maps.user, Syscall::unmap, &[0, AT, 2])
        .results();
    assert_eq!(maps.touch(AT, false), None);
    maps.sim.tear_down();
}

#[test]
fn protecting_reaches_all_pages_on_all_cpus() {
    let mut maps = Maps::new(3, 120, 40);
    let other = maps.sim.started(maps.program);
    maps.map(AT, 0, 40, WRITE).results();
    let there = maps.sim.schedule(other);
    let id = maps.sim.cpu(there).token.id();
    assert!(maps.sim.machine.touch(id, AT + 39 * 4096, true).is_some());
    let protect = [0, AT, 40, READ];
    maps.sim
        .issue(maps.user, Syscall::protect, &protect)
        .results();
    for page in 0..40 {
        assert_eq!(maps.touch(AT + page * 4096, true), None);
        assert!(maps.touch(AT + page * 4096, false).is_some());
    }
    assert_eq!(maps.sim.machine.touch(id, AT + 39 * 4096, true), None);
    maps.sim
        .issue(maps.user, Syscall::protect, &[0, AT, 40, WRITE])
        .results();
    assert!(maps.touch(AT + 39 * 4096, true).is_some());
    maps.sim.tear_down();
}

#[test]
fn an_object_lives_while_it_is_mapped_and_its_pages_come_back() {
    let mut maps = Maps::new(2, 120, 10);
    let before = maps.pages();
    maps.map(AT, 0, 10, WRITE).results();
    maps.sim.close(maps.user, maps.memory);
    maps.sim.ticks(3);
    assert!(maps.touch(AT + 9 * 4096, true).is_some());
    maps.unmap(AT, 10).results();
    maps.sim.ticks(3);
    assert!(maps.pages() <= before - 10, "the object and its node");
    maps.sim.tear_down();
}

/// The pages of an object are charged step by step, and all given back if they do not suffice.
#[test]
fn making_memory_is_all_or_nothing() {
    let mut maps = Maps::new(2, 60, 1);
    let before = maps.pages();
    let create = |maps: &mut Maps, pages: u64, contiguous: u64| {
        let create = [0, pages, contiguous];
        maps.sim.issue(maps.user, Syscall::memory_create, &create)
    };
    for contiguous in [0, 1] {
        assert_eq!(create(&mut maps, 0, contiguous).error(), Error::BadArgument);
        assert_eq!(
            create(&mut maps, 1 << 40, contiguous).error(),
            Error::QuotaExceeded
        );
        assert_eq!(
            create(&mut maps, 59, contiguous).error(),
            Error::QuotaExceeded
        );
        maps.sim.ticks(4);
        assert_eq!(maps.pages(), before);
    }
    assert_eq!(create(&mut maps, 1, 2).error(), Error::BadArgument);
    let made = handle(create(&mut maps, 30, 1).results()[0]);
    let info = maps
        .sim
        .issue(maps.user, Syscall::memory_info, &[raw(made)])
        .results();
    assert_eq!(info[0], 30);
    maps.memory = made;
    maps.map(AT, 0, 30, READ).results();
    assert!((0..30).all(|page| maps.touch(AT + page * 4096, false) == Some(0)));
    // A part shows the same frames, and keeps the whole alive.
    let part = [raw(made), 29, 1];
    let part = maps.sim.make(maps.user, Syscall::memory_part, &part);
    let base = maps
        .sim
        .issue(maps.user, Syscall::memory_info, &[raw(part)])
        .results()[1];
    assert_eq!(base, info[1] + 29 * 4096);
    let beyond = maps
        .sim
        .issue(maps.user, Syscall::memory_part, &[raw(made), 29, 2]);
    assert_eq!(beyond.error(), Error::BadArgument);
    maps.unmap(AT, 30).results();
    maps.sim.close(maps.user, made);
    maps.sim.ticks(3);
    maps.memory = part;
    maps.map(AT, 0, 1, WRITE).results();
    assert_eq!(maps.touch(AT, true), Some(0));
    maps.sim.tear_down();
}

#[test]
fn pages_that_can_be_written_are_never_executed() {
    let mut maps = Maps::new(1, 60, 4);
    assert_eq!(maps.map(AT, 0, 1, EXECUTE).error(), Error::MissingRight);
    maps.map(AT, 0, 4, WRITE).results();
    let protect = maps
        .sim
        .issue(maps.user, Syscall::protect, &[0, AT, 4, EXECUTE]);
    assert_eq!(protect.error(), Error::MissingRight);
    maps.sim.tear_down();
}

/// Another thread can write over the code of a call that is to be made again: it goes on as it was begun.
#[test]
fn a_memory_object_is_filled_as_it_was_begun() {
    for (begun, changed) in [([0, 40, 0], [0, 3, 1]), ([0, 40, 1], [0, 9, 0])] {
        let mut maps = Maps::new(1, 100, 1);
        maps.sim.step(maps.user, Syscall::memory_create, &begun);
        assert!(maps.sim.restarts(maps.user));
        let made = maps.sim.make(maps.user, Syscall::memory_create, &changed);
        let info = maps
            .sim
            .issue(maps.user, Syscall::memory_info, &[raw(made)])
            .results();
        assert_eq!(info[0], 40);
        assert_eq!(info[1] != 0, begun[2] == 1, "in a row or not");
        maps.sim.close(maps.user, made);
        maps.sim.tear_down();
    }
}

/// A call that fails half-way for another reason leaves nothing to the thread's next one.
#[test]
fn a_memory_object_is_not_the_next_calls() {
    let mut maps = Maps::new(3, 60, 1);
    let root = maps.sim.root;
    let child = maps.sim.program(60);
    let process = raw(child.handle);
    maps.sim
        .step(root, Syscall::memory_create, &[process, 40, 0]);
    assert!(maps.sim.restarts(root));
    // The handle goes away under the call.
    let first = maps.sim.kernel.process_of(maps.sim.thread(root));
    let gone = first
        .handles
        .lock(&maps.sim.cpu(0).token)
        .remove(&maps.sim.kernel.pools.chunks, child.handle)
        .unwrap();
    maps.sim.kernel.release(maps.sim.cpu(0), &gone);
    assert_eq!(maps.sim.again(root).error(), Error::BadHandle);
    let made = maps.sim.make(root, Syscall::memory_create, &[0, 2, 0]);
    let info = maps.sim.issue(root, Syscall::memory_info, &[raw(made)]);
    assert_eq!(info.results()[0], 2);
    maps.sim.tear_down();
}

#[test]
fn devices_are_never_ram_and_never_executed() {
    let mut maps = Maps::new(2, 60, 1);
    let system = raw(maps.sim.system);
    let root = maps.sim.root;
    let ram = u64::from(super::super::machine::FIRST + 5) * 4096;
    for (base, pages, error) in [
        (ram, 1, Error::BadArgument),
        (ram - 4096 * 8, 20, Error::BadArgument),
        (0x1234, 1, Error::Misaligned),
        (1 << 40, 0, Error::BadArgument),
        (1 << 44, 1, Error::BadArgument),
        (0, 1 << 30, Error::BadArgument),
        (0xfee0_0000, 1, Error::BadArgument),
        (0xfedf_f000, 2, Error::BadArgument),
    ] {
        let refused = maps
            .sim
            .issue(root, Syscall::memory_physical, &[system, base, pages]);
        assert_eq!(refused.error(), error, "{base:x} {pages}");
    }
    let device = maps
        .sim
        .make(root, Syscall::memory_physical, &[system, 1 << 40, 2]);
    let map = [0, raw(device), AT, 0, 2, EXECUTE];
    assert_eq!(
        maps.sim.issue(root, Syscall::map, &map).error(),
        Error::MissingRight
    );
    maps.sim
        .issue(root, Syscall::map, &[0, raw(device), AT, 0, 2, WRITE])
        .results();
    let buffer = [0, super::super::build::CODE, 0, 0, 0, raw(device)];
    let refused = maps.sim.issue(root, Syscall::thread_create, &buffer);
    assert_eq!(refused.error(), Error::BadArgument, "no buffer in a device");
    maps.sim.issue(root, Syscall::unmap, &[0, AT, 2]).results();
    maps.sim.tear_down();
}
