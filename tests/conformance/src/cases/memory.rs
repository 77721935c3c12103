//! Memory: what is in it, where it is mapped, and what happens when there is no more.

extern crate alloc;

use alloc::vec::Vec;

use ipc::abi::layout::PAGE_SIZE;
use ipc::abi::{Error, Handle, Rights, Syscall};
use sysroot::{Mapping, OwnedHandle, handle, record, syscall};

use crate::suite::Suite;
use crate::world::{PAGES, SCRATCH, World, made, process, raw};

const READ: u64 = Rights::READ.bits() as u64;
const WRITE: u64 = Rights::WRITE.bits() as u64;
/// Pages in a row that the kernel looks for at most.
const RUN_MAX: u64 = 1024;
/// Mappings of a process.
const MAPPINGS_MAX: usize = 64;

pub fn run(suite: &mut Suite) {
    let world = World::new();
    contents(suite);
    parts(suite, &world);
    places(suite, &world);
    access(suite, &world);
    runs_out(suite, &world);
    buffers(suite, &world);
}

/// Pages are zeroed, charged, and given back with the last handle.
fn contents(suite: &mut Suite) {
    let what = Syscall::memory_create;
    for (name, pages, contiguous) in [("pages", 40, 0), ("pages in a row", 40, 1)] {
        let create = [0, pages, contiguous, 0, 0, 0];
        let made_pages = suite.check(what, name, &create, Ok(()));
        let memory = OwnedHandle::new(super::handle(&made_pages));
        let info = syscall::memory_info(memory.raw());
        suite.holds(
            Syscall::memory_info,
            format_args!("{name}: how many, and where"),
            info.is_ok_and(|(count, base)| {
                count == pages && (base != 0) == (contiguous == 1) && base.is_multiple_of(PAGE_SIZE)
            }),
        );
        let mapping = made("a mapping", Mapping::new(memory.raw(), 0, pages, true));
        let mut bytes = [1; 256];
        let zero = (0..mapping.len()).step_by(bytes.len()).all(|at| {
            mapping.read(at, &mut bytes);
            bytes.iter().all(|byte| *byte == 0)
        });
        suite.holds(what, format_args!("{name}: zeroed"), zero);
        // For the next to find.
        for at in (0..mapping.len()).step_by(bytes.len()) {
            mapping.write(at, &[0x5a; 256]);
        }
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
    let device = suite.check(
        what,
        "of a device",
        &[raw(world.device.raw()), 0, 1, 0, 0, 0],
        Ok(()),
    );
    super::close(suite, what, super::handle(&device));
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

/// What is mapped somewhere is there, whole, until it is unmapped whole.
fn places(suite: &mut Suite, world: &World) {
    let child = raw(world.child.raw());
    let at = |address, pages| [child, raw(world.memory.raw()), address, 0, pages, READ];
    let page = |index| SCRATCH + index * PAGE_SIZE;
    suite.check(Syscall::map, "two pages", &at(page(1), 2), Ok(()));
    for (name, address, pages) in [
        ("the same", page(1), 2),
        ("its first page", page(0), 2),
        ("its last page", page(2), 2),
        ("all of it", page(0), 4),
    ] {
        suite.check(
            Syscall::map,
            format_args!("over {name}"),
            &at(address, pages),
            Err(Error::Overlap),
        );
    }
    suite.check(Syscall::map, "right before it", &at(page(0), 1), Ok(()));
    suite.check(Syscall::map, "right behind it", &at(page(3), 1), Ok(()));
    for (name, address, pages) in [
        ("a part", page(1), 1),
        ("two mappings", page(0), 3),
        ("the rest", page(2), 1),
    ] {
        suite.check(
            Syscall::unmap,
            name,
            &[child, address, pages, 0, 0, 0],
            Err(Error::NotMapped),
        );
        suite.check(
            Syscall::protect,
            name,
            &[child, address, pages, READ, 0, 0],
            Err(Error::NotMapped),
        );
    }
    for (address, pages) in [(page(0), 1), (page(1), 2), (page(3), 1)] {
        suite.check(
            Syscall::unmap,
            "a mapping",
            &[child, address, pages, 0, 0, 0],
            Ok(()),
        );
        suite.check(
            Syscall::unmap,
            "again",
            &[child, address, pages, 0, 0, 0],
            Err(Error::NotMapped),
        );
    }
    // One after the other, until the list of mappings is full.
    let mut count = 0;
    while count <= MAPPINGS_MAX {
        let address = page(2 * count as u64);
        // SAFETY: the process is not this one.
        let mapped = unsafe {
            syscall::map(
                world.child.raw(),
                world.memory.raw(),
                address,
                0,
                1,
                Rights::READ,
            )
        };
        if mapped.is_err() {
            break;
        }
        count += 1;
    }
    suite.equal(Syscall::map, "mappings of a process", count, MAPPINGS_MAX);
    suite.check(
        Syscall::map,
        "one more",
        &at(page(1000), 1),
        Err(Error::LimitReached),
    );
    for index in 0..count {
        let unmap = [child, page(2 * index as u64), 1, 0, 0, 0];
        suite.check(Syscall::unmap, "one of many", &unmap, Ok(()));
    }
}

/// Rights of a mapping are those of the handle, or less; what was written stays.
fn access(suite: &mut Suite, world: &World) {
    let (memory, cell) = made("a page", Mapping::create(1));
    cell.write(0, &[42]);
    drop(cell);
    let at = |rights| [0, raw(memory.raw()), SCRATCH, 0, 1, rights];
    let protect = |rights| [0, SCRATCH, 1, rights, 0, 0];
    suite.check(Syscall::map, "this process", &at(READ), Ok(()));
    // SAFETY: the page was just mapped for reading.
    let byte = unsafe { (SCRATCH as *const u8).read_volatile() };
    suite.equal(Syscall::map, "its content is there", byte, 42);
    suite.check(
        Syscall::protect,
        "to more, which the handle allows",
        &protect(WRITE),
        Ok(()),
    );
    // SAFETY: the page was just made writable, and nobody else has it.
    unsafe { (SCRATCH as *mut u8).write_volatile(43) };
    suite.check(Syscall::protect, "to less", &protect(READ), Ok(()));
    suite.check(
        Syscall::unmap,
        "this process",
        &[0, SCRATCH, 1, 0, 0, 0],
        Ok(()),
    );
    let reading = made("a copy", handle::duplicate(memory.raw(), Rights::READ));
    let child = raw(world.child.raw());
    let map = [child, raw(reading.raw()), SCRATCH, 0, 1, READ];
    suite.check(Syscall::map, "a handle that reads", &map, Ok(()));
    let more = [child, SCRATCH, 1, WRITE, 0, 0];
    suite.check(
        Syscall::protect,
        "to more than the handle allowed",
        &more,
        Err(Error::MissingRight),
    );
    suite.check(
        Syscall::unmap,
        "a handle that reads",
        &[child, SCRATCH, 1, 0, 0, 0],
        Ok(()),
    );
    let device = [child, raw(world.device.raw()), SCRATCH, 0, 1, READ | WRITE];
    suite.check(Syscall::map, "a device", &device, Ok(()));
    suite.check(
        Syscall::unmap,
        "a device",
        &[child, SCRATCH, 1, 0, 0, 0],
        Ok(()),
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
    let device = [raw(world.system), crate::world::DEVICE, 1, 0, 0, 0];
    suite.check(Syscall::memory_physical, "one more object", &device, limit);
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
