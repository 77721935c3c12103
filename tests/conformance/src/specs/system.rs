//! The log, the state and the power of the system, and the profiling driver.

use ipc::abi::info::InfoKind;
use ipc::abi::layout::LOG_PART_MAX;
use ipc::abi::profile::SourceRequest;
use ipc::abi::{Error, ObjectType, Rights, Syscall};
use sysroot::syscall;

use super::{CPUS_MAX, outside, takes};
use crate::spec::{Arg, Spec, Value, handle};
use crate::world::raw;

/// Longest piece of log in one call.
const LOG_MAX: u64 = LOG_PART_MAX as u64;

const fn not_found(what: &'static str, value: u64) -> Value {
    (what, value, Err(Error::NotFound))
}

const fn unsupported(what: &'static str, value: u64) -> Value {
    (what, value, Err(Error::Unsupported))
}

const PROFILER: Arg = handle(ObjectType::Profiler, Rights::MANAGE);
const CPU: Arg = Arg::Number(&[
    takes("the first", 0),
    not_found("more than a machine can have", CPUS_MAX),
    not_found("33 bits", 1 << 32),
    not_found("the most", u64::MAX),
]);
/// An action of `system_power` that is none.
const NO_ACTION: u64 = 2;

pub const SPECS: [Spec; 13] = [
    Spec::new(
        Syscall::log_write,
        |world| [raw(world.log), 0, 0, 0, 0, 0],
        &[
            handle(ObjectType::System, Rights::LOG_WRITE),
            Arg::Number(&[
                takes("none", 0),
                takes("one", 1),
                takes("the most", LOG_MAX),
                ("one more", LOG_MAX + 1, Err(Error::TooLarge)),
                ("the most of 64 bits", u64::MAX, Err(Error::TooLarge)),
            ]),
        ],
    ),
    Spec::new(
        Syscall::log_read,
        |world| [raw(world.system), 0, 0, 0, 0, 0],
        &[handle(ObjectType::System, Rights::LOG_READ), Arg::Any],
    ),
    Spec::new(
        Syscall::system_info,
        |world| [raw(world.system), InfoKind::Memory as u64, 0, 0, 0, 0],
        &[
            handle(ObjectType::System, Rights::INSPECT),
            Arg::Number(&[
                takes("memory", InfoKind::Memory as u64),
                takes("a CPU", InfoKind::Cpu as u64),
                takes("the command line", InfoKind::CommandLine as u64),
                takes("the version", InfoKind::Version as u64),
                outside("a large one", 1 << 20),
                outside("33 bits", 1 << 32),
                outside("the most", u64::MAX),
            ]),
            Arg::Number(&[
                takes("the only one", 0),
                not_found("one more", 1),
                not_found("the most", u64::MAX),
            ]),
        ],
    ),
    // An action that is none: the others do not return.
    Spec::new(
        Syscall::system_power,
        |world| [raw(world.system), NO_ACTION, 0, 0, 0, 0],
        &[
            handle(ObjectType::System, Rights::POWER),
            Arg::Number(&[
                outside("none", NO_ACTION),
                outside("33 bits", 1 << 32),
                outside("the most", u64::MAX),
            ]),
        ],
    )
    .fails(Error::BadArgument),
    // No event: a profile is started in a case of its own.
    Spec::new(
        Syscall::profiler_start,
        |world| [raw(world.profiler), SourceRequest::Best as u64, 0, 0, 0, 0],
        &[
            PROFILER,
            Arg::Number(&[
                outside("the tick", SourceRequest::Tick as u64),
                unsupported("a counter", SourceRequest::Pmu as u64),
                outside("a timer", SourceRequest::Timer as u64),
                outside("one more", SourceRequest::Tick as u64 + 1),
                outside("33 bits", 1 << 32),
                outside("the most", u64::MAX),
            ]),
            Arg::Number(&[
                outside("none", 0),
                unsupported("more than are looked at", 5),
                unsupported("the most", u64::MAX),
            ]),
        ],
    )
    .fails(Error::BadArgument),
    Spec::new(
        Syscall::profiler_stop,
        |world| [raw(world.profiler), 0, 0, 0, 0, 0],
        &[PROFILER],
    )
    .fails(Error::WrongState),
    Spec::new(
        Syscall::profiler_status,
        |world| [raw(world.profiler), 0, 0, 0, 0, 0],
        &[PROFILER],
    ),
    Spec::new(
        Syscall::profiler_cpu,
        |world| [raw(world.profiler), 0, 0, 0, 0, 0],
        &[PROFILER, CPU],
    ),
    Spec::new(
        Syscall::profiler_monitor,
        |world| [raw(world.profiler), 0, 0, 0, 0, 0],
        &[PROFILER, CPU],
    ),
    Spec::new(
        Syscall::profiler_rings,
        |world| [raw(world.profiler), 0, 0, 0, 0, 0],
        &[PROFILER],
    ),
    Spec::new(
        Syscall::profiler_notify,
        |world| {
            let notification = raw(world.notification.raw());
            [raw(world.profiler), notification, 1, 0, 0, 0]
        },
        &[
            PROFILER,
            handle(ObjectType::Notification, Rights::SIGNAL),
            Arg::Any,
        ],
    ),
    Spec::new(
        Syscall::trace_control,
        |world| [raw(world.system), 0, 0, 0, 0, 0],
        &[
            handle(ObjectType::System, Rights::INSPECT),
            Arg::Number(&[
                takes("off", 0),
                takes("on", 1),
                outside("neither", 2),
                outside("33 bits", 1 << 32),
                outside("the most", u64::MAX),
            ]),
        ],
    )
    .undo(|world, _, _| {
        let off = syscall::trace_control(world.system, 0);
        assert_eq!(off, Ok(()), "a handle that may inspect");
    }),
    Spec::new(
        Syscall::trace_read,
        |world| [raw(world.system), 0, 0, 0, 0, 0],
        &[handle(ObjectType::System, Rights::INSPECT), CPU, Arg::Any],
    ),
];
