//! Messages, notifications and time.

use ipc::abi::{Error, NEVER, NOW, ObjectType, Rights, Syscall, Tag};
use sysroot::{OwnedHandle, syscall};

use super::{outside, takes};
use crate::spec::{Arg, PAST, Spec, Zero, handle, handle_or};
use crate::world::{World, raw};

/// A message with an operation and nothing else.
const TAG: u64 = Tag::new(7, 0, 0).raw();

fn park_again(world: &mut World) {
    if let Ok(reply) = syscall::reply_park()
        && let Some(taken) = world.reply.replace(OwnedHandle::new(reply))
    {
        // Taking it up has used it up.
        let _ = taken.into_raw();
    }
}

pub const SPECS: [Spec; 13] = [
    Spec::new(Syscall::null, |_| [0; 6], &[]),
    Spec::new(
        Syscall::call,
        |world| [raw(world.endpoint.raw()), TAG, NOW, 1, 2, 3],
        &[handle(ObjectType::Endpoint, Rights::CALL), Arg::Tag, PAST],
    )
    .fails(Error::TimedOut),
    Spec::new(
        Syscall::receive,
        |world| [raw(world.endpoint.raw()), NOW, 0, 0, 0, 0],
        &[handle(ObjectType::Endpoint, Rights::RECEIVE), PAST],
    )
    .fails(Error::TimedOut),
    Spec::new(Syscall::reply, |_| [TAG, 0, 0, 0, 0, 0], &[Arg::Tag]).fails(Error::NoReply),
    Spec::new(
        Syscall::reply_receive,
        |world| [raw(world.endpoint.raw()), TAG, NOW, 0, 0, 0],
        &[
            handle(ObjectType::Endpoint, Rights::RECEIVE),
            Arg::Tag,
            PAST,
        ],
    )
    .fails(Error::TimedOut),
    Spec::new(Syscall::reply_park, |_| [0; 6], &[]).fails(Error::NoReply),
    Spec::new(
        Syscall::reply_take,
        |world| {
            let reply = world.reply.as_ref().map_or(0, |reply| raw(reply.raw()));
            [reply, 0, 0, 0, 0, 0]
        },
        &[handle(ObjectType::Reply, Rights::empty())],
    )
    .undo(|world, _, _| park_again(world)),
    Spec::new(
        Syscall::signal,
        |world| [raw(world.notification.raw()), 1, 0, 0, 0, 0],
        &[handle(ObjectType::Notification, Rights::SIGNAL), Arg::Any],
    ),
    Spec::new(
        Syscall::wait,
        |world| [raw(world.notification.raw()), NOW, 0, 0, 0, 0],
        &[handle(ObjectType::Notification, Rights::WAIT), PAST],
    )
    .fails(Error::TimedOut),
    Spec::new(
        Syscall::bind,
        |world| {
            let (notification, held) = (world.notification.raw(), world.held.raw());
            [raw(notification), raw(held), 0, 0, 0, 0]
        },
        &[
            handle(ObjectType::Notification, Rights::WAIT),
            handle_or(ObjectType::Thread, Rights::MANAGE, Zero::Caller(Ok(()))),
        ],
    )
    .undo(|world, _, _| {
        let unbound = syscall::bind(world.notification.raw(), ipc::abi::Handle::NONE);
        assert_eq!(unbound, Ok(()), "a bond of this program's own");
    }),
    Spec::new(
        Syscall::timer_set,
        |world| [raw(world.notification.raw()), 1, NEVER, 0, 0, 0],
        &[
            handle(ObjectType::Notification, Rights::WAIT),
            Arg::Any,
            Arg::Number(&[
                takes("now", NOW),
                takes("the first nanosecond", 1),
                takes("the last nanosecond", NEVER - 1),
                takes("never", NEVER),
            ]),
        ],
    )
    .undo(|world, _, _| {
        let cancelled = syscall::timer_set(world.notification.raw(), 0, NEVER);
        assert_eq!(cancelled, Ok(()), "a timer of this program's own");
    }),
    Spec::new(
        Syscall::sleep,
        |_| [NOW, 0, 0, 0, 0, 0],
        &[Arg::Number(&[
            takes("now", NOW),
            takes("the first nanosecond", 1),
            outside("never", NEVER),
        ])],
    ),
    Spec::new(Syscall::yield_now, |_| [0; 6], &[]),
];
