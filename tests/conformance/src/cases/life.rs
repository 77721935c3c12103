//! How processes and threads begin and end.

extern crate alloc;

use alloc::string::ToString;

use ipc::abi::exit::{ExitReason, FaultKind};
use ipc::abi::info::ThreadState;
use ipc::abi::startup::names;
use ipc::abi::{Error, Handle, NEVER, Syscall};
use ipc::proto::init::{self, Args, Ending, Name, Spawn};
use sysroot::{Connection, OwnedHandle, record, startup, syscall, thread, time};

use super::{SOON, close, handle, reaches};
use crate::buffer;
use crate::raw::keeps;
use crate::spec::Want;
use crate::suite::Suite;
use crate::world::{
    DEAD_CODE, PRIORITY, QUOTA, SCRATCH, World, given, held_thread, made, process, raw,
};

/// Quota of a process that a case makes.
const SHARE: u64 = 100;
/// Its image.
const IMAGE: u64 = 7;
/// The code with which it is ended: of more than 32 bits.
const CODE: u64 = 1 << 32 | 1;

pub fn run(suite: &mut Suite) {
    registers(suite);
    exits(suite);
    creates(suite);
    kills(suite);
    faults(suite);
    thread_ends(suite);
    sets(suite);
    pools(suite);
}

/// A call keeps the registers that carry nothing: one that does nothing, one that fails, one that waits, one that is made again.
fn registers(suite: &mut Suite) {
    for (what, arguments) in [
        (Syscall::null, [0; 3]),
        (Syscall::handle_close, [0; 3]),
        (Syscall::sleep, [time::after(SOON), 0, 0]),
        (Syscall::memory_create, [0, 200, 0]),
    ] {
        // SAFETY: none of them takes anything away. What is made stays until the program ends.
        let kept = unsafe { keeps(what as u64, arguments) };
        suite.holds(what, "other registers are kept", kept);
    }
}

/// What a second instance of this program does: ends, in one way or the other.
pub fn peer(how: &str) {
    if how == "thread" {
        let _ = syscall::thread_exit();
    }
    let _ = syscall::process_exit(how.parse().unwrap_or_default());
}

/// A program ends with its code, or with the code 0 when its last thread does.
fn exits(suite: &mut Suite) {
    let connection = made("init", Connection::named("init").ok_or(Error::NotFound));
    let mut init = init::Client::new(connection);
    let mut ends = |how: &str| {
        let mut args = Args::new();
        let fits = args.push(how).is_ok();
        let program = Name::try_from(startup::name()).unwrap_or_default();
        let spawn = Spawn {
            program,
            args,
            held: false,
        };
        let pid = init.spawn(&spawn, None).ok().filter(|_| fits)?;
        let report = init.wait(&pid).ok()?;
        Some((report.ending, report.code))
    };
    for code in [0, 1, 255, 256, u64::MAX] {
        let case = format_args!("code {code:#x}");
        let ended = ends(&code.to_string());
        suite.equal(
            Syscall::process_exit,
            case,
            ended,
            Some((Ending::Exited, code)),
        );
    }
    let case = "the last thread of a process";
    suite.equal(
        Syscall::thread_exit,
        case,
        ends("thread"),
        Some((Ending::Exited, 0)),
    );
}

/// A process has the name, the image and the quota that it was made with; the quota is the caller's again when it is over.
fn creates(suite: &mut Suite) {
    let what = Syscall::process_create;
    let ended = OwnedHandle::new(made("a notification", syscall::notification_create()));
    let pages = || record::process_status(Handle::NONE).map_or(0, |status| status.pages);
    let before = pages();
    buffer::write(0, b"a name of 16 byt");
    let made_by = [
        raw(given(names::SYSTEM)),
        SHARE,
        IMAGE,
        raw(ended.raw()),
        1 << 63,
        0,
    ];
    let returned = suite.check(what, "a process", &made_by, Ok(()));
    let child = OwnedHandle::new(handle(&returned));
    suite.equal(what, "its quota is the caller's", pages(), before + SHARE);
    let status = record::process_status(child.raw());
    let seen = status.map(|s| (s.reason, s.quota_pages, s.threads, s.state));
    let fresh = (
        ExitReason::Running as u64,
        SHARE,
        0,
        ThreadState::Held as u64,
    );
    suite.equal(Syscall::process_status, "a new process", seen, Ok(fresh));
    let exact = [
        raw(given(names::SYSTEM)),
        u64::MAX,
        IMAGE,
        raw(ended.raw()),
        1,
        0,
    ];
    suite.check(
        what,
        "a quota of all there is",
        &exact,
        Err(Error::QuotaExceeded),
    );
    suite.check(
        Syscall::process_kill,
        "a process without threads",
        &[raw(child.raw()), CODE, 0, 0, 0, 0],
        Ok(()),
    );
    let bits = suite.check(
        Syscall::wait,
        "the end of a process",
        &[raw(ended.raw()), NEVER, 0, 0, 0, 0],
        Ok(()),
    );
    suite.equal(what, "its end signals the bits", bits.registers[0], 1 << 63);
    let status = record::process_status(child.raw());
    let seen = status.map(|s| (s.reason, s.code, s.reclaimed, s.pages, s.quota_pages));
    let over = (ExitReason::Killed as u64, CODE, 1, 0, 0);
    suite.equal(Syscall::process_status, "an ended process", seen, Ok(over));
    suite.equal(what, "its quota comes back", pages(), before);
}

/// A second kill changes nothing.
fn kills(suite: &mut Suite) {
    let world = World::new();
    let again = [raw(world.dead.raw()), 99, 0, 0, 0, 0];
    suite.check(Syscall::process_kill, "a second time", &again, Ok(()));
    let code = record::process_status(world.dead.raw()).map(|status| status.code);
    suite.equal(
        Syscall::process_kill,
        "the first code stays",
        code,
        Ok(DEAD_CODE),
    );
    let state = syscall::thread_info(world.dead_thread.raw()).map(|info| info.1);
    let dead = Ok(ThreadState::Dead as u64);
    suite.equal(Syscall::thread_info, "a thread that ended", state, dead);
    let set = [raw(world.dead_thread.raw()), 0, u64::MAX, 0, 0, 0];
    suite.check(Syscall::thread_set, "a thread that ended", &set, Ok(()));
    let state = syscall::thread_info(world.held.raw()).map(|info| (info.1, info.2));
    let held = Ok((ThreadState::Held as u64, 0));
    suite.equal(Syscall::thread_info, "a held thread", state, held);
    let ran = syscall::thread_info(Handle::NONE).is_ok_and(|info| info.2 > 0);
    suite.holds(Syscall::thread_info, "a thread that runs has run", ran);
}

/// A thread that is started runs where it was told to: here there is no code, and its process ends.
fn faults(suite: &mut Suite) {
    let ended = OwnedHandle::new(made("a notification", syscall::notification_create()));
    let memory = OwnedHandle::new(made("memory", syscall::memory_create(Handle::NONE, 1, 0)));
    let child = process(QUOTA, ended.raw(), 1);
    let thread = held_thread(&child, &memory);
    let start = [raw(thread.raw()), 0, 0, 0, 0, 0];
    suite.check(Syscall::thread_start, "a held thread", &start, Ok(()));
    made("an end", syscall::wait(ended.raw(), NEVER));
    suite.check(
        Syscall::thread_start,
        "again",
        &start,
        Err(Error::WrongState),
    );
    let crash =
        record::process_status(child.raw()).map(|s| (s.reason, s.crash.kind, s.crash.address));
    let want = (ExitReason::Faulted as u64, FaultKind::Page as u64, SCRATCH);
    suite.equal(
        Syscall::thread_create,
        "it begins at its entry",
        crash,
        Ok(want),
    );
}

/// A thread that ends leaves its process running.
fn thread_ends(suite: &mut Suite) {
    let thread = made("a thread", thread::spawn(syscall::thread_exit));
    let is_dead = reaches(thread.handle(), ThreadState::Dead);
    suite.holds(Syscall::thread_exit, "one of two threads", is_dead);
    // It has not returned from its body, so it cannot be joined: its stack stays.
    core::mem::forget(thread);
}

/// A thread runs where it is pinned.
fn sets(suite: &mut Suite) {
    let cpus = startup::info().cpus;
    let what = Syscall::thread_set;
    for cpu in 0..cpus {
        let pin = [0, PRIORITY, cpu, 0, 0, 0];
        suite.check(what, format_args!("CPU {cpu}"), &pin, Ok(()));
        let there = record::process_status(Handle::NONE).map(|status| status.cpu);
        suite.equal(what, format_args!("it runs on CPU {cpu}"), there, Ok(cpu));
    }
    let pin = [0, PRIORITY, cpus, 0, 0, 0];
    suite.check(what, "one CPU more than run", &pin, Err(Error::BadArgument));
}

/// As many processes as there can be, then as many threads as a process may have.
fn pools(suite: &mut Suite) {
    let world = World::new();
    let mut children = alloc::vec::Vec::new();
    let create = [raw(world.system), 8, 0, raw(world.notification.raw()), 0, 0];
    let full: Want = loop {
        match syscall::process_create(world.system, 8, 0, world.notification.raw(), 0) {
            Ok(child) => children.push(child),
            Err(error) => break Err(error),
        }
    };
    let none = Err(Error::OutOfMemory);
    suite.equal(Syscall::process_create, "the last slot", full, none);
    suite.check(Syscall::process_create, "no slot left", &create, none);
    suite.holds(
        Syscall::process_create,
        "there were some",
        children.len() > 16,
    );
    for child in children {
        close(suite, Syscall::process_create, child);
    }
    let mut threads = alloc::vec::Vec::new();
    let (child, memory) = (world.child.raw(), world.memory.raw());
    let full: Want = loop {
        // SAFETY: the process is not this one.
        match unsafe { syscall::thread_create(child, SCRATCH, SCRATCH, 0, 0, memory) } {
            Ok(thread) => threads.push(OwnedHandle::new(thread)),
            Err(error) => break Err(error),
        }
    };
    let limit = Err(Error::LimitReached);
    suite.equal(Syscall::thread_create, "the last of a process", full, limit);
    // Other processes have places for as many, until the pool is empty.
    let mut others = alloc::vec::Vec::new();
    let empty: Want = loop {
        let other = process(QUOTA, world.notification.raw(), 0);
        let full = loop {
            // SAFETY: the process is not this one.
            match unsafe { syscall::thread_create(other.raw(), SCRATCH, SCRATCH, 0, 0, memory) } {
                Ok(thread) => threads.push(OwnedHandle::new(thread)),
                Err(error) => break error,
            }
        };
        others.push(other);
        if full != Error::LimitReached {
            break Err(full);
        }
    };
    let case = "no slot left";
    suite.record(
        Syscall::thread_create,
        case,
        empty,
        &[Err(Error::OutOfMemory)],
    );
}
