//! A profile from start to end.

use ipc::abi::monitor::{Interface, MonitorInfo, Verdict};
use ipc::abi::profile::{DOMAINS_ALL, EVENT_CYCLES, EventSpec, Phase, Source, SourceRequest};
use ipc::abi::{Error, Rights, Syscall};
use sysroot::{Mapping, OwnedHandle, record, startup, syscall};
use zerocopy::IntoBytes;

use crate::buffer;
use crate::suite::Suite;
use crate::world::{World, raw, until};

const CYCLES: EventSpec = EventSpec {
    event: EVENT_CYCLES,
    raw: 0,
    frequency: 0,
    domains: DOMAINS_ALL,
};

pub fn run(suite: &mut Suite) {
    let world = World::new();
    let profiler = world.profiler;
    let in_phase = |phase: Phase| {
        until(|| record::profiler_status(profiler).is_ok_and(|status| status.phase == phase as u64))
    };
    let what = Syscall::profiler_start;
    let start = |source: SourceRequest, specs| [raw(profiler), source as u64, specs, 0, 0, 0];
    for (name, spec, want) in [
        (
            "another event",
            EventSpec { event: 1, ..CYCLES },
            Error::Unsupported,
        ),
        (
            "a raw code",
            EventSpec { raw: 1, ..CYCLES },
            Error::Unsupported,
        ),
        (
            "a rate that no source has",
            EventSpec {
                frequency: 100_001,
                ..CYCLES
            },
            Error::Unsupported,
        ),
        (
            "user code alone",
            EventSpec {
                domains: 1,
                ..CYCLES
            },
            Error::Unsupported,
        ),
        (
            "no domain",
            EventSpec {
                domains: 0,
                ..CYCLES
            },
            Error::BadArgument,
        ),
        (
            "domains that are none",
            EventSpec {
                domains: 4,
                ..CYCLES
            },
            Error::BadArgument,
        ),
    ] {
        buffer::write(0, spec.as_bytes());
        suite.check(what, name, &start(SourceRequest::Best, 1), Err(want));
    }
    let slow = EventSpec {
        frequency: 9,
        ..CYCLES
    };
    buffer::write(0, slow.as_bytes());
    suite.check(
        what,
        "too slow for a timer",
        &start(SourceRequest::Timer, 1),
        Err(Error::Unsupported),
    );
    let fast = EventSpec {
        frequency: 101,
        ..CYCLES
    };
    buffer::write(0, fast.as_bytes());
    suite.check(
        what,
        "too fast for the tick",
        &start(SourceRequest::Tick, 1),
        Err(Error::Unsupported),
    );
    buffer::write(0, [CYCLES; 4].as_bytes());
    suite.check(
        what,
        "two events",
        &start(SourceRequest::Best, 2),
        Err(Error::Unsupported),
    );
    suite.check(
        what,
        "four events",
        &start(SourceRequest::Best, 4),
        Err(Error::Unsupported),
    );
    let notify = [raw(profiler), raw(world.notification.raw()), 2, 0, 0, 0];
    suite.check(Syscall::profiler_notify, "before a start", &notify, Ok(()));
    let asked = EventSpec {
        frequency: 1234,
        ..CYCLES
    };
    buffer::write(0, asked.as_bytes());
    let started = suite.check(
        what,
        "a timer, at a frequency",
        &start(SourceRequest::Timer, 1),
        Ok(()),
    );
    let source = Source::from_raw(started.registers[0]);
    suite.equal(what, "it says which", source, Some(Source::TimerNmi));
    let frequency = record::profiler_status(profiler).map(|status| status.frequency);
    suite.equal(
        Syscall::profiler_status,
        "the frequency asked for",
        frequency,
        Ok(1234),
    );
    buffer::write(0, CYCLES.as_bytes());
    suite.check(
        what,
        "while one is on",
        &start(SourceRequest::Best, 1),
        Err(Error::Busy),
    );
    suite.holds(
        Syscall::profiler_status,
        "every CPU arms",
        in_phase(Phase::Open),
    );
    let bits = syscall::wait(world.notification.raw(), ipc::abi::NEVER);
    suite.equal(Syscall::profiler_notify, "the window opens", bits, Ok(2));
    let stop = [raw(profiler), 0, 0, 0, 0, 0];
    suite.check(
        Syscall::profiler_stop,
        "a profile that is on",
        &stop,
        Ok(()),
    );
    suite.holds(
        Syscall::profiler_status,
        "every CPU disarms",
        in_phase(Phase::Idle),
    );
    suite.check(
        Syscall::profiler_stop,
        "when none is on",
        &stop,
        Err(Error::WrongState),
    );
    rings(suite, &world);
}

/// Whether all of it goes together: a CPU tries what it claims, and measures the rate of what counts.
fn is_whole(info: MonitorInfo) -> bool {
    let claims = info.interface != Interface::None as u64;
    let counts = [Verdict::Works, Verdict::Silent, Verdict::Misreports];
    let counts = counts.map(|verdict| verdict as u64);
    claims == (info.verdict != Verdict::Untried as u64)
        && counts.contains(&info.verdict) == (info.hz > 0)
}

/// The rings are there to be read, and for nothing else.
fn rings(suite: &mut Suite, world: &World) {
    let what = Syscall::profiler_rings;
    let rings = suite.check(
        what,
        "all rings",
        &[raw(world.profiler), 0, 0, 0, 0, 0],
        Ok(()),
    );
    let memory = OwnedHandle::new(super::handle(&rings));
    let rights = memory.info().map(|info| info.1);
    suite.equal(what, "they can be read alone", rights, Ok(Rights::READ));
    let cpus = startup::info().cpus;
    let pages = syscall::memory_info(memory.raw()).map(|info| info.0 * ipc::abi::layout::PAGE_SIZE);
    suite.equal(
        what,
        "one for each CPU",
        pages,
        Ok(rings.registers[1] * cpus),
    );
    let writing = Mapping::new(memory.raw(), 0, 1, true).map(|_| ());
    suite.record(
        Syscall::map,
        "rings to be written",
        writing,
        &[Err(Error::MissingRight)],
    );
    for what in [Syscall::profiler_cpu, Syscall::profiler_monitor] {
        suite.check(
            what,
            "one CPU more than run",
            &[raw(world.profiler), cpus, 0, 0, 0, 0],
            Err(Error::NotFound),
        );
    }
    let what = Syscall::profiler_monitor;
    let info = record::profiler_monitor(world.profiler, cpus - 1);
    suite.holds(
        what,
        "every CPU has tried what it claims",
        info.is_ok_and(is_whole),
    );
}
