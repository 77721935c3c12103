//! Mappings: where something is mapped, and what may be done to it there.

use ipc::abi::layout::{INFO_PAGE, MAPPINGS_MAX, PAGE_SIZE};
use ipc::abi::{Error, Rights, Syscall};
use sysroot::{Mapping, handle, syscall};

use crate::suite::Suite;
use crate::world::{SCRATCH, World, made, raw};

const READ: u64 = Rights::READ.bits() as u64;
const WRITE: u64 = Rights::WRITE.bits() as u64;

pub fn run(suite: &mut Suite) {
    let world = World::new();
    places(suite, &world);
    access(suite, &world);
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
    for (name, address) in [
        ("ends with the information page", INFO_PAGE - PAGE_SIZE),
        ("begins with it", INFO_PAGE),
    ] {
        let over = at(address, 2);
        suite.check(Syscall::map, name, &over, Err(Error::Overlap));
    }
    // One after the other, until the list of mappings is full.
    let mut count = 0;
    while count <= MAPPINGS_MAX {
        let address = page(2 * count);
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
        let unmap = [child, page(2 * index), 1, 0, 0, 0];
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
