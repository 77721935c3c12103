//! Interrupts and ports.

use ipc::abi::layout::INTERRUPTS;
use ipc::abi::{BY_MESSAGE, Error, ObjectType, Rights, Syscall};

use super::{outside, takes};
use crate::spec::{Arg, Spec, handle};
use crate::world::{PORT_COUNT, PORTS, raw};

/// The line of the serial port, which the console has.
const TAKEN: u64 = 4;
/// A line that no device of the machine is on.
const FREE: u64 = 9;

/// I/O ports that there are.
const ALL_PORTS: u64 = 1 << 16;

const OFFSETS: Arg = Arg::Number(&[
    takes("the first", 0),
    takes("the last", PORT_COUNT - 1),
    outside("behind the last", PORT_COUNT),
    outside("the most", u64::MAX),
]);
const BYTES: Arg = Arg::Number(&[
    outside("none", 0),
    takes("one", 1),
    takes("two", 2),
    outside("three", 3),
    takes("four", 4),
    outside("eight", 8),
    outside("257", 257),
    outside("the most", u64::MAX),
]);

pub const SPECS: [Spec; 5] = [
    Spec::new(
        Syscall::interrupt_create,
        |world| {
            let (system, notification) = (world.system, world.notification.raw());
            [raw(system), BY_MESSAGE, raw(notification), 1, 0, 0]
        },
        &[
            handle(ObjectType::System, Rights::DEVICES),
            Arg::Number(&[
                takes("one that is free", FREE),
                ("one that is taken", TAKEN, Err(Error::Busy)),
                outside("behind the last", INTERRUPTS as u64),
                outside("33 bits", 1 << 32 | FREE),
                outside("one less than by message", BY_MESSAGE - 1),
            ]),
            handle(ObjectType::Notification, Rights::SIGNAL),
            Arg::Any,
        ],
    ),
    Spec::new(
        Syscall::interrupt_ack,
        |world| [raw(world.interrupt.raw()), 0, 0, 0, 0, 0],
        &[handle(ObjectType::Interrupt, Rights::MANAGE)],
    ),
    Spec::new(
        Syscall::ports_create,
        |world| [raw(world.system), PORTS, PORT_COUNT, 0, 0, 0],
        &[
            handle(ObjectType::System, Rights::DEVICES),
            Arg::Number(&[
                takes("the first", 0),
                takes(
                    "as many before the last as asked for",
                    ALL_PORTS - PORT_COUNT,
                ),
                outside("the last", ALL_PORTS - 1),
                outside("behind the last", ALL_PORTS),
                outside("the most", u64::MAX),
            ]),
            Arg::Number(&[
                outside("none", 0),
                takes("one", 1),
                takes("all behind the first", ALL_PORTS - PORTS),
                outside("one more", ALL_PORTS + 1 - PORTS),
                outside("33 bits", 1 << 32 | 1),
                outside("the most", u64::MAX),
            ]),
        ],
    ),
    Spec::new(
        Syscall::port_read,
        |world| [raw(world.ports.raw()), 0, 1, 0, 0, 0],
        &[handle(ObjectType::Ports, Rights::READ), OFFSETS, BYTES],
    ),
    Spec::new(
        Syscall::port_write,
        |world| [raw(world.ports.raw()), 0, 1, 0, 0, 0],
        &[
            handle(ObjectType::Ports, Rights::WRITE),
            OFFSETS,
            BYTES,
            Arg::Any,
        ],
    ),
];
