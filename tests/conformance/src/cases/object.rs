//! Handles: what they say of what they name, and where there is no place for more.

extern crate alloc;

use alloc::vec::Vec;

use ipc::abi::{Error, Handle, ObjectType, Rights, Syscall};
use sysroot::{OwnedHandle, syscall};

use crate::spec::Want;
use crate::specs;
use crate::suite::Suite;
use crate::systematic;
use crate::world::{QUOTA, TABLE, World, made, process, raw};

pub fn run(suite: &mut Suite) {
    let mut world = World::new();
    infos(suite, &world);
    gives(suite, &mut world);
    limits(suite);
}

/// The type, the rights and the badge of each object.
fn infos(suite: &mut Suite, world: &World) {
    let what = Syscall::handle_info;
    let share = Rights::DUPLICATE | Rights::TRANSFER;
    for (kind, handle) in world.each() {
        let info = suite.check(
            what,
            format_args!("{kind:?}"),
            &[raw(handle), 0, 0, 0, 0, 0],
            Ok(()),
        );
        let [got, rights, badge] = [info.registers[0], info.registers[1], info.registers[2]];
        suite.equal(
            what,
            format_args!("{kind:?}: type and badge"),
            (got, badge),
            (kind as u64, 0),
        );
        let want = match kind {
            ObjectType::Process | ObjectType::Thread => share | Rights::MANAGE | Rights::INSPECT,
            ObjectType::Endpoint => share | Rights::CALL | Rights::RECEIVE | Rights::MINT,
            ObjectType::Notification => share | Rights::SIGNAL | Rights::WAIT,
            ObjectType::Memory | ObjectType::Ports => share | Rights::READ | Rights::WRITE,
            ObjectType::Interrupt => share | Rights::MANAGE,
            ObjectType::Reply => Rights::TRANSFER | Rights::MANAGE,
            // Their maker decides.
            ObjectType::Profiler | ObjectType::System => continue,
        };
        suite.equal(
            what,
            format_args!("{kind:?}: rights"),
            rights,
            want.bits().into(),
        );
        let copies = syscall::handle_duplicate(handle, Rights::empty()).map(OwnedHandle::new);
        let want: Want = if kind == ObjectType::Reply {
            Err(Error::MissingRight)
        } else {
            Ok(())
        };
        suite.record(
            Syscall::handle_duplicate,
            format_args!("{kind:?}"),
            copies.map(|_| ()),
            &[want],
        );
    }
    let minted = syscall::handle_mint(world.minting.raw(), u64::MAX, Rights::CALL);
    let minted = OwnedHandle::new(made("a handle", minted));
    let info = minted.info();
    let want = Ok((ObjectType::Endpoint, Rights::CALL, u64::MAX));
    suite.equal(Syscall::handle_mint, "its badge and rights", info, want);
}

/// A handle that is given away is gone, and one that cannot be given stays.
fn gives(suite: &mut Suite, world: &mut World) {
    let what = Syscall::handle_give;
    let all = Rights::SIGNAL | Rights::WAIT | Rights::DUPLICATE | Rights::TRANSFER;
    let copy = world.copy(world.notification.raw(), all);
    let give = [0, raw(copy), Rights::SIGNAL.bits().into(), 0, 0, 0];
    let given = suite.check(what, "process 0", &give, Ok(()));
    let there = OwnedHandle::new(super::handle(&given));
    let gone = super::status(syscall::handle_info(copy));
    suite.equal(
        what,
        "the handle names nothing",
        gone,
        Err(Error::BadHandle),
    );
    let rights = there.info().map(|info| info.1);
    suite.equal(
        what,
        "it has the rights that were kept",
        rights,
        Ok(Rights::SIGNAL),
    );
    let reply = world.reply.as_ref().map_or(Handle::NONE, OwnedHandle::raw);
    let child = raw(world.child.raw());
    // Whoever has the reply answers for it: the process ends, and the caller hears.
    let given = suite.check(what, "a reply", &[child, raw(reply), 0, 0, 0, 0], Ok(()));
    suite.holds(what, "a reply has a handle there", given.registers[0] != 0);
    // The world's own end joins the caller, which must have failed.
    made("an end", syscall::process_kill(world.child.raw(), 0));
}

/// Objects of a process: an eighth of all there can be.
fn limits(suite: &mut Suite) {
    let limit = Error::LimitReached;
    let world = World::new();
    let mut made_so_far = Vec::new();
    let full = fill(&mut made_so_far, syscall::endpoint_create);
    suite.equal(
        Syscall::endpoint_create,
        "the last of a process",
        full,
        limit,
    );
    suite.check(Syscall::endpoint_create, "one more", &[0; 6], Err(limit));
    let full = fill(&mut made_so_far, syscall::notification_create);
    suite.equal(
        Syscall::notification_create,
        "the last of a process",
        full,
        limit,
    );
    suite.check(
        Syscall::notification_create,
        "one more",
        &[0; 6],
        Err(limit),
    );
    let minting = world.minting.raw();
    let full = fill(&mut made_so_far, || {
        syscall::handle_mint(minting, 3, Rights::CALL)
    });
    suite.equal(
        Syscall::handle_mint,
        "the last badge of a process",
        full,
        limit,
    );
    suite.check(
        Syscall::handle_mint,
        "one more",
        &[raw(minting), 4, 0, 0, 0, 0],
        Err(limit),
    );
}

fn fill(made: &mut Vec<OwnedHandle>, mut make: impl FnMut() -> Result<Handle, Error>) -> Error {
    loop {
        match make() {
            Ok(handle) => made.push(OwnedHandle::new(handle)),
            Err(error) => return error,
        }
    }
}

/// Gives a process handles until it takes no more.
fn stuff(world: &World, process: &OwnedHandle) -> (usize, Error) {
    for count in 0.. {
        let rights = Rights::TRANSFER;
        let given = syscall::handle_duplicate(world.notification.raw(), rights).and_then(|copy| {
            syscall::handle_give(process.raw(), copy, Rights::empty())
                .inspect_err(|_| made("an end", syscall::handle_close(copy)))
        });
        if let Err(error) = given {
            return (count, error);
        }
    }
    unreachable!("the loop has no other end")
}

/// Handle tables grow from a pool that all processes share, and never shrink. When it is empty, a program whose own table has not
/// grown yet can make nothing that needs a place.
pub fn starves(suite: &mut Suite) {
    let what = Syscall::handle_give;
    let world = World::new();
    let (count, full) = stuff(&world, &world.child);
    suite.equal(what, "handles of a table", count, TABLE);
    suite.record(what, "a full table", Err(full), &[Err(Error::LimitReached)]);
    let mut others = Vec::new();
    let empty = loop {
        let other = process(QUOTA, world.notification.raw(), 0);
        let (_, error) = stuff(&world, &other);
        others.push(other);
        if error != Error::LimitReached {
            break Err(error);
        }
    };
    suite.record(
        what,
        "no piece of table left",
        empty,
        &[Err(Error::OutOfMemory)],
    );
    for spec in specs::ALL.iter().flat_map(|part| part.iter()) {
        systematic::without_room(suite, spec, Error::OutOfMemory);
    }
    super::message::starves(suite);
}
