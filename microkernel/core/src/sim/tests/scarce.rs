//! What is on its way back is not used up: frames and places in the pools wait for a grace period, and who needs them with them.

use super::space::Maps;
use super::*;
use crate::sim::run::Entry;
use std::sync::atomic::Ordering::Relaxed;

/// What the first program is charged.
fn charged(sim: &Sim) -> u64 {
    sim.kernel
        .process_of(sim.thread(sim.root))
        .pages
        .load(Relaxed)
}

/// Free frames, and frames that wait for a grace period.
fn frames(sim: &Sim) -> (u64, u64) {
    let usage = sim.kernel.frames.usage(&sim.cpu(0).token);
    (usage.free.into(), usage.waiting.into())
}

/// Frees a memory object of the first program: its frames are paid for no longer, and wait.
fn free(sim: &mut Sim, memory: Handle) {
    let (root, before) = (sim.root, charged(sim));
    let info = sim.issue(root, Syscall::memory_info, &[raw(memory)]);
    let pages = info.results()[0];
    sim.close(root, memory);
    while charged(sim) > before - pages {
        sim.issue(root, Syscall::null, &[]).results();
    }
    assert!(frames(sim).1 >= pages, "they are not free yet");
}

/// A search for frames in a row does not give up while the row is only on its way back.
#[test]
fn a_run_on_its_way_back_is_waited_for() {
    for cpus in [1, 2, 4] {
        let mut sim = Sim::new(cpus);
        let root = sim.root;
        for _ in 0..3 {
            let run = sim.make(root, Syscall::memory_create, &[0, 400, 1]);
            free(&mut sim, run);
        }
        // One that will never come is not: whatever is free, it is not in a row.
        while frames(&sim).1 > 0 {
            sim.ticks(1);
        }
        let rows = [200, 10, 200].map(|pages| {
            let row = [0, pages, 1];
            sim.make(root, Syscall::memory_create, &row)
        });
        free(&mut sim, rows[0]);
        free(&mut sim, rows[2]);
        assert!(frames(&sim).0 + frames(&sim).1 > 450);
        let none = sim.issue(root, Syscall::memory_create, &[0, 450, 1]);
        assert_eq!(none.error(), Error::OutOfMemory);
        sim.tear_down();
    }
}

/// Nor does what needs more than one frame for one thing: a page and a node of the list it is in, a process and its tables.
#[test]
fn all_frames_that_are_needed_are_waited_for() {
    for what in [Syscall::memory_create, Syscall::process_create] {
        let mut sim = Sim::new(2);
        let root = sim.root;
        let ended = sim.make(root, Syscall::notification_create, &[]);
        let few = sim.make(root, Syscall::memory_create, &[0, 20, 0]);
        // With its nodes it leaves one frame.
        let pages = frames(&sim).0 - 4;
        sim.make(root, Syscall::memory_create, &[0, pages, 0]);
        free(&mut sim, few);
        assert_eq!(frames(&sim).0, 1);
        let arguments = match what {
            Syscall::memory_create => vec![0, 1, 0],
            _ => vec![raw(sim.system), 8, 0, raw(ended), 1],
        };
        sim.make(root, what, &arguments);
        sim.tear_down();
    }
}

/// A program has its quota, and its places in the pools, again as soon as it has let go of what took them.
#[test]
fn what_is_being_freed_is_not_used_up() {
    let mut maps = Maps::new(2, 100, 1);
    for contiguous in [0, 1, 0, 1] {
        let create = [0, 70, contiguous];
        let memory = maps.sim.make(maps.user, Syscall::memory_create, &create);
        maps.sim.close(maps.user, memory);
    }
    // One thread gives the last place up while another is at it.
    let other = maps.sim.started(maps.program);
    let create = |maps: &mut Maps| maps.sim.issue(maps.user, Syscall::endpoint_create, &[]);
    let mut last = Handle::NONE;
    let full = loop {
        match create(&mut maps) {
            Outcome::Returned(Ok([made, ..])) => last = handle(made),
            full => break full,
        }
    };
    assert_eq!(full.error(), Error::LimitReached);
    let (here, there) = (maps.sim.schedule(maps.user), maps.sim.schedule(other));
    maps.sim.prepare(other, Syscall::handle_close, &[raw(last)]);
    maps.sim.come_in(there, Entry::Syscall);
    maps.sim.prepare(maps.user, Syscall::endpoint_create, &[]);
    maps.sim.come_in(here, Entry::Syscall);
    assert!(maps.sim.restarts(maps.user));
    maps.sim.leave(there);
    maps.sim.leave(here);
    maps.sim.again(maps.user).results();
    maps.sim.tear_down();
}

/// Frames that only wait for their grace period are not what a machine has run out of.
#[test]
fn frames_on_their_way_back_are_waited_for() {
    for cpus in [1, 2, 4] {
        let mut sim = Sim::new(cpus);
        let root = sim.root;
        for _ in 0..3 {
            let memory = sim.make(root, Syscall::memory_create, &[0, 600, 0]);
            free(&mut sim, memory);
        }
        sim.tear_down();
    }
}
