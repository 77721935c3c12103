//! Memory objects: what is in them, and what happens when there is no more.

extern crate alloc;

use alloc::vec::Vec;

use ipc::abi::layout::PAGE_SIZE;
use ipc::abi::{Error, Handle, Rights, Syscall};
use sysroot::{Mapping, OwnedHandle, handle, record, syscall};

use crate::suite::Suite;
use crate::world::{DEVICE, IO_APIC, PAGES, RAM, SCRATCH, World, made, process, raw, until};

const READ: u64 = Rights::READ.bits() as u64;
/// Pages in a row that the kernel looks for at most.
const RUN_MAX: u64 = 1024;
/// Pages that take several steps to make.
const SOME: u64 = 40;
/// Bytes that are looked at in one go.
const PIECE: usize = 256;

pub fn run(suite: &mut Suite) {
    let world = World::new();
    contents(suite);
    parts(suite, &world);
    devices(suite, &world);
    runs_out(suite, &world);
    buffers(suite, &world);
}

/// Pages are zeroed, charged, and given back with the last handle.
fn contents(suite: &mut Suite) {
    let what = Syscall::memory_create;
    for (name, contiguous) in [("pages", 0), ("pages in a row", 1)] {
        let create = [0, SOME, contiguous, 0, 0, 0];
        let made_pages = suite.check(what, name, &create, Ok(()));
        let memory = OwnedHandle::new(super::handle(&made_pages));
        let info = syscall::memory_info(memory.raw());
        suite.holds(
            Syscall::memory_info,
            format_args!("{name}: how many, and where"),
            info.is_ok_and(|(count, base)| {
                count == SOME && (base != 0) == (contiguous == 1) && base.is_multiple_of(PAGE_SIZE)
            }),
        );
        suite.holds(what, format_args!("{name}: zeroed"), is_zero(&memory));
    }
    let used: Vec<_> = (0..8).map(|_| some_in_a_row()).collect();
    let places: Vec<_> = used.iter().map(base).collect();
    used.iter().for_each(fill);
    drop(used);
    // They come back a little later.
    let mut again = some_in_a_row();
    let came_back = until(|| {
        let at = base(&again);
        let within = |&place: &u64| (place..place + SOME * PAGE_SIZE).contains(&at);
        let found = places.iter().any(within);
        if !found {
            again = some_in_a_row();
        }
        found
    });
    suite.holds(what, "pages in a row come back", came_back);
    suite.holds(what, "pages that were used: zeroed", is_zero(&again));
}

fn some_in_a_row() -> OwnedHandle {
    let run = syscall::memory_create(Handle::NONE, SOME, 1);
    OwnedHandle::new(made("pages in a row", run))
}

fn base(run: &OwnedHandle) -> u64 {
    made("its base", syscall::memory_info(run.raw())).1
}

fn is_zero(memory: &OwnedHandle) -> bool {
    let mapping = made("a mapping", Mapping::new(memory.raw(), 0, SOME, true));
    let mut bytes = [1; PIECE];
    (0..mapping.len()).step_by(PIECE).all(|at| {
        mapping.read(at, &mut bytes);
        bytes.iter().all(|byte| *byte == 0)
    })
}

fn fill(memory: &OwnedHandle) {
    let mapping = made("a mapping", Mapping::new(memory.raw(), 0, SOME, true));
    for at in (0..mapping.len()).step_by(PIECE) {
        mapping.write(at, &[0x5a; PIECE]);
    }
}

/// Parts name the pages of the whole.
fn parts(suite: &mut Suite, world: &World) {
    let what = Syscall::memory_part;
    let paged = [raw(world.memory.raw()), 0, 1, 0, 0, 0];
    suite.check(
        what,
        "pages that are not in a row",
        &paged,
        Err(Error::WrongState),
    );
    let (_, base) = made("a base", syscall::memory_info(world.run.raw()));
    let part = suite.check(
        what,
        "two pages of four",
        &[raw(world.run.raw()), 1, 2, 0, 0, 0],
        Ok(()),
    );
    let part = OwnedHandle::new(super::handle(&part));
    let info = syscall::memory_info(part.raw());
    suite.equal(what, "where they are", info, Ok((2, base + PAGE_SIZE)));
    let inner = suite.check(
        what,
        "a part of a part",
        &[raw(part.raw()), 1, 1, 0, 0, 0],
        Ok(()),
    );
    let inner = OwnedHandle::new(super::handle(&inner));
    let info = syscall::memory_info(inner.raw());
    suite.equal(what, "where that is", info, Ok((1, base + 2 * PAGE_SIZE)));
    suite.check(
        what,
        "behind a part",
        &[raw(part.raw()), 2, 1, 0, 0, 0],
        Err(Error::BadArgument),
    );
    let device = syscall::memory_physical(world.system, DEVICE, 2);
    let device = OwnedHandle::new(made("device memory", device));
    let part = [raw(device.raw()), 1, 1, 0, 0, 0];
    let part = suite.check(what, "of a device", &part, Ok(()));
    let part = OwnedHandle::new(super::handle(&part));
    let info = syscall::memory_info(part.raw());
    let second = DEVICE + PAGE_SIZE;
    suite.equal(what, "where that is in it", info, Ok((1, second)));
    let weak = made(
        "a copy",
        handle::duplicate(world.run.raw(), Rights::READ | Rights::DUPLICATE),
    );
    let part = suite.check(
        what,
        "through a handle that reads",
        &[raw(weak.raw()), 0, 1, 0, 0, 0],
        Ok(()),
    );
    let part = OwnedHandle::new(super::handle(&part));
    let rights = part.info().map(|info| info.1);
    suite.equal(
        what,
        "it has no more rights",
        rights,
        Ok(Rights::READ | Rights::DUPLICATE),
    );
}

/// Quota, places for objects, and pages in a row.
fn runs_out(suite: &mut Suite, world: &World) {
    let poor = process(8, world.notification.raw(), 0);
    let child = raw(poor.raw());
    let quota = Err(Error::QuotaExceeded);
    let used = || record::process_status(poor.raw()).map(|status| status.pages);
    let before = used();
    suite.check(
        Syscall::memory_create,
        "the whole quota of a process that uses some",
        &[child, 8, 0, 0, 0, 0],
        quota,
    );
    suite.check(
        Syscall::memory_create,
        "the same in a row",
        &[child, 8, 1, 0, 0, 0],
        quota,
    );
    suite.equal(
        Syscall::memory_create,
        "nothing stays charged",
        used(),
        before,
    );
    // Each needs tables of its own: three for the first, then more than there is left.
    let at = |index: u64| {
        [
            child,
            raw(world.memory.raw()),
            SCRATCH + (index << 39),
            0,
            1,
            READ,
        ]
    };
    suite.check(Syscall::map, "tables within the quota", &at(0), Ok(()));
    let before = used();
    suite.check(Syscall::map, "tables above the quota", &at(1), quota);
    suite.equal(Syscall::map, "nothing stays charged", used(), before);
    let run = [0, RUN_MAX + 1, 1, 0, 0, 0];
    suite.check(
        Syscall::memory_create,
        "more in a row than are looked for",
        &run,
        Err(Error::OutOfMemory),
    );
    let mut objects = Vec::new();
    let full = loop {
        match syscall::memory_create(world.child.raw(), 1, 0) {
            Ok(memory) => objects.push(OwnedHandle::new(memory)),
            Err(error) => break error,
        }
    };
    suite.equal(
        Syscall::memory_create,
        "the last page of a quota",
        full,
        Error::QuotaExceeded,
    );
    drop(objects);
    // Parts cost no page, but a place among the objects of their maker.
    let mut parts = Vec::new();
    let full = loop {
        match syscall::memory_part(world.run.raw(), 0, 1) {
            Ok(part) => parts.push(OwnedHandle::new(part)),
            Err(error) => break error,
        }
    };
    let limit = Err(Error::LimitReached);
    suite.equal(
        Syscall::memory_part,
        "the last object of a process",
        Err(full),
        limit,
    );
    suite.check(
        Syscall::memory_part,
        "one more object",
        &[raw(world.run.raw()), 0, PAGES, 0, 0, 0],
        limit,
    );
    suite.check(
        Syscall::memory_create,
        "one more object",
        &[0, 1, 0, 0, 0, 0],
        limit,
    );
    let device = [raw(world.system), DEVICE, 1, 0, 0, 0];
    suite.check(Syscall::memory_physical, "one more object", &device, limit);
}

/// All of a range must be a device's.
fn devices(suite: &mut Suite, world: &World) {
    for (name, behind) in [("RAM", RAM), ("an I/O APIC", IO_APIC)] {
        let case = format_args!("the page before {name}, and {name}");
        let range = [raw(world.system), behind - PAGE_SIZE, 2, 0, 0, 0];
        let refused = Err(Error::BadArgument);
        suite.check(Syscall::memory_physical, case, &range, refused);
    }
}

/// A thread's buffer is RAM.
fn buffers(suite: &mut Suite, world: &World) {
    let buffer = |memory: Handle| [raw(world.child.raw()), SCRATCH, SCRATCH, 0, 0, raw(memory)];
    let what = Syscall::thread_create;
    suite.check(
        what,
        "a device as buffer",
        &buffer(world.device.raw()),
        Err(Error::BadArgument),
    );
    let thread = suite.check(
        what,
        "pages in a row as buffer",
        &buffer(world.run.raw()),
        Ok(()),
    );
    super::close(suite, what, super::handle(&thread));
}
