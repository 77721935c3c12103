//! Processes and threads.

use ipc::abi::layout::{PRIORITY_MAX, USER_END, USER_START};
use ipc::abi::{Error, ObjectType, Rights, Syscall};

use super::{CPUS_MAX, NOT_CANONICAL, bad_address, outside, takes};
use crate::spec::{Arg, Spec, Zero, handle, handle_or};
use crate::world::{PRIORITY, QUOTA_MIN, SCRATCH, raw};

/// An address of code or data: of programs.
const BYTE: Arg = Arg::Number(&[
    takes("0", 0),
    takes("the first page", USER_START),
    takes("the last byte", USER_END - 1),
    bad_address("the end of the user half", USER_END),
    bad_address("the first that is not canonical", NOT_CANONICAL),
    bad_address("the most", u64::MAX),
]);

pub const SPECS: [Spec; 9] = [
    Spec::new(
        Syscall::process_create,
        |world| {
            let (system, notification) = (world.system, world.notification.raw());
            [raw(system), QUOTA_MIN, 0, raw(notification), 0, 0]
        },
        &[
            handle(ObjectType::System, Rights::SPAWN),
            Arg::Number(&[
                outside("none", 0),
                outside("one less than the least", QUOTA_MIN - 1),
                takes("the least", QUOTA_MIN),
                ("more than the caller's", 1 << 40, Err(Error::QuotaExceeded)),
                ("the most", u64::MAX, Err(Error::QuotaExceeded)),
            ]),
            Arg::Number(&[
                takes("none", 0),
                takes("the last", u32::MAX as u64),
                outside("33 bits", 1 << 32),
                outside("the most", u64::MAX),
            ]),
            handle(ObjectType::Notification, Rights::SIGNAL),
            Arg::Any,
        ],
    ),
    Spec::never(Syscall::process_exit, &[Arg::Apart]),
    Spec::new(
        Syscall::process_kill,
        |world| [raw(world.dead.raw()), 1, 0, 0, 0, 0],
        &[handle(ObjectType::Process, Rights::MANAGE), Arg::Any],
    ),
    Spec::new(
        Syscall::process_status,
        |world| [raw(world.child.raw()), 0, 0, 0, 0, 0],
        &[handle_or(
            ObjectType::Process,
            Rights::INSPECT,
            Zero::Caller(Ok(())),
        )],
    )
    .dead(Ok(())),
    Spec::new(
        Syscall::thread_create,
        |world| {
            let (child, memory) = (world.child.raw(), world.memory.raw());
            [raw(child), SCRATCH, SCRATCH, 0, 0, raw(memory)]
        },
        &[
            handle_or(ObjectType::Process, Rights::MANAGE, Zero::Apart),
            BYTE,
            Arg::Number(&[
                takes("0", 0),
                takes("the end of the user half", USER_END),
                bad_address("behind the end", USER_END + 1),
                bad_address("the first that is not canonical", NOT_CANONICAL),
                bad_address("the most", u64::MAX),
            ]),
            Arg::Any,
            BYTE,
            handle(ObjectType::Memory, Rights::READ.union(Rights::WRITE)),
        ],
    )
    .dead(Err(Error::PeerDied)),
    Spec::new(
        Syscall::thread_start,
        |world| [raw(world.dead_thread.raw()), 0, 0, 0, 0, 0],
        &[handle_or(
            ObjectType::Thread,
            Rights::MANAGE,
            Zero::Caller(Err(Error::WrongState)),
        )],
    )
    .fails(Error::WrongState),
    Spec::new(
        Syscall::thread_set,
        |world| [raw(world.held.raw()), PRIORITY, u64::MAX, 0, 0, 0],
        &[
            handle_or(ObjectType::Thread, Rights::MANAGE, Zero::Caller(Ok(()))),
            Arg::Number(&[
                takes("the lowest", 0),
                takes("the caller's", PRIORITY),
                outside("one more than the caller's", PRIORITY + 1),
                outside("the highest", PRIORITY_MAX as u64),
                outside("one more than the highest", PRIORITY_MAX as u64 + 1),
                outside("a multiple of 256", 256),
                outside("the most", u64::MAX),
            ]),
            Arg::Number(&[
                takes("the first", 0),
                takes("any", u64::MAX),
                outside("more than a machine can have", CPUS_MAX),
                outside("what marks any in a byte", 255),
                outside("a multiple of 256", 256),
                outside("one less than any", u64::MAX - 1),
            ]),
        ],
    ),
    Spec::never(Syscall::thread_exit, &[]),
    Spec::new(
        Syscall::thread_info,
        |world| [raw(world.held.raw()), 0, 0, 0, 0, 0],
        &[handle_or(
            ObjectType::Thread,
            Rights::INSPECT,
            Zero::Caller(Ok(())),
        )],
    ),
];
