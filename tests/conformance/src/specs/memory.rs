//! Memory objects and mappings.

use ipc::abi::layout::{INFO_PAGE, PAGE_SIZE, PHYSICAL_END, USER_END, USER_START};
use ipc::abi::{Error, Handle, ObjectType, Rights, Syscall};
use sysroot::syscall;

use super::{NOT_CANONICAL, bad_address, outside, takes};
use crate::raw::Returned;
use crate::spec::{Arg, Arguments, Spec, Value, Zero, handle, handle_or};
use crate::world::{DEVICE, IO_APIC, LOCAL_APIC, PAGES, QUOTA, RAM, SCRATCH, World, raw};

const READ: u64 = Rights::READ.bits() as u64;
const WRITE: u64 = Rights::WRITE.bits() as u64;
const EXECUTE: u64 = Rights::EXECUTE.bits() as u64;
/// Pages of which the bytes are more than 64 bits hold, so that they look like one.
const OVERFLOWS: u64 = (1 << 52) + 1;
/// As many as one step of `memory_create` makes.
const STEP: u64 = 16;
/// More than any program has, and more than the user half holds.
const MANY: u64 = 1 << 40;
/// First address of the kernel's half.
const KERNEL: u64 = 0xffff_8000_0000_0000;

const fn misaligned(what: &'static str, value: u64) -> Value {
    (what, value, Err(Error::Misaligned))
}

const RIGHTS: Arg = Arg::Rights(&[
    outside("none", 0),
    takes("READ", READ),
    takes("WRITE", WRITE),
    (
        "EXECUTE, which no memory has that was made",
        EXECUTE,
        Err(Error::MissingRight),
    ),
    outside("WRITE and EXECUTE", WRITE | EXECUTE),
    outside(
        "one that is not about pages",
        READ | Rights::CALL.bits() as u64,
    ),
]);

/// The addresses that name no page which a program may map.
macro_rules! wrong_addresses {
    ($($more:expr),*) => {
        Arg::Number(&[
            bad_address("0", 0),
            bad_address("the page before the first", USER_START - PAGE_SIZE),
            misaligned("not a page's", SCRATCH + 1),
            misaligned("in the middle of a word", SCRATCH + PAGE_SIZE - 8),
            bad_address("the end of the user half", USER_END),
            bad_address("the first that is not canonical", NOT_CANONICAL),
            bad_address("the kernel's", KERNEL),
            bad_address("the last page", !(PAGE_SIZE - 1)),
            misaligned("the last byte", u64::MAX),
            $($more),*
        ])
    };
}

/// A page of an object.
const PAGE: Arg = Arg::Number(&[
    takes("the first page", 0),
    takes("the last", PAGES - 1),
    outside("behind the last", PAGES),
    outside("the most", u64::MAX),
]);

/// Numbers of pages of an object, from its first.
macro_rules! pages {
    ($($more:expr),*) => {
        Arg::Number(&[
            outside("none", 0),
            takes("all", PAGES),
            outside("one more than there are", PAGES + 1),
            $($more),*
        ])
    };
}

/// The process of a mapping; this one has none where the cases look.
const MAPPED_IN: Arg = handle_or(
    ObjectType::Process,
    Rights::MANAGE,
    Zero::Caller(Err(Error::NotMapped)),
);
/// The address of a mapping.
const MAPPED_AT: Arg = wrong_addresses!(
    (
        "the page behind",
        SCRATCH + PAGE_SIZE,
        Err(Error::NotMapped)
    ),
    ("the information page", INFO_PAGE, Err(Error::NotMapped))
);
/// Its pages.
const MAPPED_PAGES: Arg = Arg::Number(&[
    outside("none", 0),
    ("more than are mapped", 2, Err(Error::NotMapped)),
    bad_address("too many bytes for 64 bits", OVERFLOWS),
    bad_address("the most", u64::MAX),
]);

fn map_one(world: &World) {
    // SAFETY: the process is not this one.
    let mapped = unsafe {
        let rights = Rights::READ | Rights::WRITE;
        syscall::map(world.child.raw(), world.memory.raw(), SCRATCH, 0, 1, rights)
    };
    assert_eq!(mapped, Ok(()), "a page for a case");
}

/// Unmaps what a call has mapped, wherever it was told to.
fn unmap(_: &mut World, arguments: &Arguments, returned: &Returned) {
    if returned.status == 0 {
        let process = Handle::from_raw(arguments[0] as u32);
        // SAFETY: the case mapped it, and nothing else is at its addresses.
        let unmapped = unsafe { syscall::unmap(process, arguments[2], arguments[4]) };
        assert_eq!(unmapped, Ok(()), "what a case mapped");
    }
}

fn unmap_one(world: &mut World, _: &Arguments, _: &Returned) {
    // SAFETY: the process is not this one. A case may have unmapped the page.
    let _ = unsafe { syscall::unmap(world.child.raw(), SCRATCH, 1) };
}

pub const SPECS: [Spec; 7] = [
    Spec::new(
        Syscall::memory_create,
        |world| [raw(world.child.raw()), 1, 0, 0, 0, 0],
        &[
            handle_or(ObjectType::Process, Rights::MANAGE, Zero::Caller(Ok(()))),
            Arg::Number(&[
                outside("none", 0),
                takes("the least", 1),
                takes("as many as one step makes", STEP),
                takes("one more", STEP + 1),
                ("more than the quota", QUOTA + 1, Err(Error::QuotaExceeded)),
                ("more than there are", MANY, Err(Error::QuotaExceeded)),
                (
                    "too many bytes for 64 bits",
                    OVERFLOWS,
                    Err(Error::QuotaExceeded),
                ),
                ("the most", u64::MAX, Err(Error::QuotaExceeded)),
            ]),
            Arg::Number(&[
                takes("no", 0),
                takes("yes", 1),
                outside("neither", 2),
                outside("the most", u64::MAX),
            ]),
        ],
    )
    .dead(Err(Error::PeerDied)),
    Spec::new(
        Syscall::memory_physical,
        |world| [raw(world.system), DEVICE, 1, 0, 0, 0],
        &[
            handle(ObjectType::System, Rights::DEVICES),
            Arg::Number(&[
                takes("device memory", DEVICE),
                takes("the last page", PHYSICAL_END - PAGE_SIZE),
                outside("behind the last page", PHYSICAL_END),
                outside("RAM", RAM),
                outside("an I/O APIC", IO_APIC),
                outside("the local APIC", LOCAL_APIC),
                outside("the kernel's half", KERNEL),
                outside("the end of 64 bits", !(PAGE_SIZE - 1)),
                misaligned("not a page's", DEVICE + 1),
                misaligned("the most", u64::MAX),
            ]),
            Arg::Number(&[
                outside("none", 0),
                takes("the least", 1),
                outside("as many as reach past the last", PHYSICAL_END / PAGE_SIZE),
                outside("too many bytes for 64 bits", OVERFLOWS),
                outside("the most", u64::MAX),
            ]),
        ],
    ),
    Spec::new(
        Syscall::memory_part,
        |world| [raw(world.run.raw()), 0, 1, 0, 0, 0],
        &[
            handle(ObjectType::Memory, Rights::DUPLICATE),
            PAGE,
            pages!(outside("the most", u64::MAX)),
        ],
    ),
    Spec::new(
        Syscall::memory_info,
        |world| [raw(world.memory.raw()), 0, 0, 0, 0, 0],
        &[handle(ObjectType::Memory, Rights::empty())],
    ),
    Spec::new(
        Syscall::map,
        |world| {
            let (child, memory) = (world.child.raw(), world.memory.raw());
            [raw(child), raw(memory), SCRATCH, 0, 1, READ | WRITE]
        },
        &[
            handle_or(ObjectType::Process, Rights::MANAGE, Zero::Caller(Ok(()))),
            handle(ObjectType::Memory, Rights::READ.union(Rights::WRITE)),
            wrong_addresses!(
                takes("the first page", USER_START),
                takes("the last page", USER_END - PAGE_SIZE),
                ("the information page", INFO_PAGE, Err(Error::Overlap))
            ),
            PAGE,
            pages!(
                bad_address("as many as leave the user half", MANY),
                bad_address("too many bytes for 64 bits", OVERFLOWS),
                bad_address("the most", u64::MAX)
            ),
            RIGHTS,
        ],
    )
    .undo(unmap)
    .dead(Err(Error::PeerDied)),
    Spec::new(
        Syscall::unmap,
        |world| {
            map_one(world);
            [raw(world.child.raw()), SCRATCH, 1, 0, 0, 0]
        },
        &[MAPPED_IN, MAPPED_AT, MAPPED_PAGES],
    )
    .undo(unmap_one)
    .dead(Err(Error::PeerDied)),
    Spec::new(
        Syscall::protect,
        |world| {
            map_one(world);
            [raw(world.child.raw()), SCRATCH, 1, READ, 0, 0]
        },
        &[MAPPED_IN, MAPPED_AT, MAPPED_PAGES, RIGHTS],
    )
    .undo(unmap_one)
    .dead(Err(Error::PeerDied)),
];
