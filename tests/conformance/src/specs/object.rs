//! Handles, endpoints and notifications.

use ipc::abi::{Error, ObjectType, Rights, Syscall};

use super::{outside, takes};
use crate::spec::{Arg, Spec, Want, Zero, any_handle, handle, handle_or};
use crate::world::raw;

/// A right that no notification has.
const LACKING: (&str, u64, Want) = (
    "a right that the handle lacks",
    Rights::MANAGE.bits() as u64,
    Err(Error::MissingRight),
);
/// Those that one has.
const HAD: Rights = Rights::SIGNAL
    .union(Rights::WAIT)
    .union(Rights::DUPLICATE)
    .union(Rights::TRANSFER);
/// What a handle with a badge can allow.
const MINTED: Rights = Rights::CALL
    .union(Rights::DUPLICATE)
    .union(Rights::TRANSFER);

pub const SPECS: [Spec; 7] = [
    Spec::new(
        Syscall::handle_close,
        |world| {
            let copy = world.copy(world.notification.raw(), HAD);
            [raw(copy), 0, 0, 0, 0, 0]
        },
        &[any_handle(Rights::empty())],
    ),
    Spec::new(
        Syscall::handle_duplicate,
        |world| [raw(world.notification.raw()), 0, 0, 0, 0, 0],
        &[
            any_handle(Rights::DUPLICATE),
            Arg::Rights(&[
                takes("none", 0),
                takes("all that it has", HAD.bits() as u64),
                LACKING,
            ]),
        ],
    ),
    Spec::new(
        Syscall::handle_mint,
        |world| {
            let rights = u64::from(Rights::CALL.bits());
            [raw(world.minting.raw()), 5, rights, 0, 0, 0]
        },
        &[
            handle(ObjectType::Endpoint, Rights::MINT),
            Arg::Number(&[
                outside("none", 0),
                takes("the least", 1),
                takes("the most", u64::MAX),
            ]),
            Arg::Rights(&[
                takes("none", 0),
                takes("all that it can have", MINTED.bits() as u64),
                outside("to receive", Rights::RECEIVE.bits() as u64),
                outside("to mint", Rights::MINT.bits() as u64),
                outside("that of another type", Rights::WAIT.bits() as u64),
            ]),
        ],
    ),
    Spec::new(
        Syscall::handle_info,
        |world| [raw(world.notification.raw()), 0, 0, 0, 0, 0],
        &[any_handle(Rights::empty())],
    ),
    Spec::new(
        Syscall::handle_give,
        |world| {
            let copy = world.copy(world.notification.raw(), HAD);
            let child = raw(world.child.raw());
            [child, raw(copy), Rights::SIGNAL.bits().into(), 0, 0, 0]
        },
        &[
            handle_or(ObjectType::Process, Rights::MANAGE, Zero::Apart),
            any_handle(Rights::TRANSFER),
            Arg::Rights(&[
                takes("none", 0),
                takes("all that it has", HAD.bits() as u64),
                LACKING,
            ]),
        ],
    )
    .dead(Err(Error::PeerDied)),
    Spec::new(Syscall::endpoint_create, |_| [0; 6], &[]),
    Spec::new(Syscall::notification_create, |_| [0; 6], &[]),
];
