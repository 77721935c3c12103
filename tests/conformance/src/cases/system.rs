//! The log, the state of the system and its trace.

use ipc::abi::info::{CpuInfo, InfoKind, MemoryInfo, Pool};
use ipc::abi::inspect::{StackKind, mapping_index, page_index, stack_index};
use ipc::abi::layout::INTERRUPTS;
use ipc::abi::trace::{TRACE_NEWEST, TraceRecord};
use ipc::abi::{Error, Handle, Syscall};
use sysroot::{record, syscall, time};

use crate::buffer;
use crate::suite::Suite;
use crate::world::{PRIORITY, World, made, raw};

/// Calls that are made to be counted.
const CALLS: u64 = 10_000;

pub fn run(suite: &mut Suite, cpus: u64) {
    let world = World::new();
    log(suite, &world);
    state(suite, &world, cpus);
    trace(suite, &world);
}

/// What is written to the log comes back, as lines of this program, with what cannot be printed replaced.
fn log(suite: &mut Suite, world: &World) {
    let end = |position| syscall::log_read(world.system, position);
    let position = end(u64::MAX).map_or(0, |read| read.0);
    buffer::write(0, b"a line\x1b\n");
    suite.check(
        Syscall::log_write,
        "a line",
        &[raw(world.log), 8, 0, 0, 0, 0],
        Ok(()),
    );
    let read = suite.check(
        Syscall::log_read,
        "a line",
        &[raw(world.system), position, 0, 0, 0, 0],
        Ok(()),
    );
    let [next, len, lost] = [read.registers[0], read.registers[1], read.registers[2]];
    let bytes = buffer::read();
    let text = bytes.get(..len as usize).unwrap_or_default();
    suite.holds(
        Syscall::log_read,
        "the line",
        text.ends_with(b": a line?\n"),
    );
    suite.equal(
        Syscall::log_read,
        "positions count bytes",
        (next, lost),
        (position + len, 0),
    );
    let read = suite.check(
        Syscall::log_read,
        "at the end",
        &[raw(world.system), next, 0, 0, 0, 0],
        Ok(()),
    );
    suite.equal(
        Syscall::log_read,
        "there is no more",
        (read.registers[0], read.registers[1]),
        (next, 0),
    );
}

/// Records have the length of their type; a CPU that is not there has none.
fn state(suite: &mut Suite, world: &World, cpus: u64) {
    let what = Syscall::system_info;
    let ask = |kind: InfoKind, index| [raw(world.system), kind as u64, index, 0, 0, 0];
    let memory = suite.check(what, "memory", &ask(InfoKind::Memory, 0), Ok(()));
    let bytes = size_of::<MemoryInfo>() as u64;
    suite.equal(
        what,
        "the length of a memory record",
        memory.registers[0],
        bytes,
    );
    for cpu in 0..cpus {
        let info = suite.check(
            what,
            format_args!("CPU {cpu}"),
            &ask(InfoKind::Cpu, cpu),
            Ok(()),
        );
        let bytes = size_of::<CpuInfo>() as u64;
        suite.equal(
            what,
            "the length of a CPU's record",
            info.registers[0],
            bytes,
        );
    }
    for kind in InfoKind::ALL {
        let first = format_args!("{kind:?}, the first");
        suite.check(what, first, &ask(kind, 0), Ok(()));
        let last = format_args!("{kind:?}, the last of 64 bits");
        let missing = Err(Error::NotFound);
        suite.check(what, last, &ask(kind, u64::MAX), missing);
    }
    let pools = made("a record", record::memory_info(world.system)).pools;
    let [processes, threads] = [Pool::Processes, Pool::Threads].map(|pool| pools[pool as usize][1]);
    let mappings = mapping_index(processes, 0);
    for (kind, end) in [
        (InfoKind::Cpu, cpus),
        (InfoKind::Process, processes),
        (InfoKind::Thread, threads),
        (InfoKind::Mapping, mappings),
        (InfoKind::Page, page_index(mappings, 0)),
        (InfoKind::Stack, stack_index(cpus, StackKind::Kernel)),
        (InfoKind::Interrupts, cpus),
        (InfoKind::Line, INTERRUPTS.into()),
    ] {
        let last = format_args!("{kind:?}, the last");
        suite.check(what, last, &ask(kind, end - 1), Ok(()));
        let past = format_args!("{kind:?}, one more than there can be");
        suite.check(what, past, &ask(kind, end), Err(Error::NotFound));
    }
    let pinned = syscall::thread_set(Handle::NONE, PRIORITY, 0);
    suite.equal(Syscall::thread_set, "the first CPU", pinned, Ok(()));
    let made_calls = || made("a record", record::cpu_info(world.system, 0)).syscalls;
    let before = made_calls();
    for _ in 0..CALLS {
        made("a call", syscall::null());
    }
    let counted = made_calls() - before >= CALLS;
    suite.holds(what, "a CPU's calls are counted", counted);
    let version = suite.check(what, "the version", &ask(InfoKind::Version, 0), Ok(()));
    suite.holds(what, "there is one", version.registers[0] > 0);
    let missing = Err(Error::NotFound);
    suite.check(
        what,
        "a second version",
        &ask(InfoKind::Version, 1),
        missing,
    );
}

/// What happens while the trace is on can be read, and positions count it.
fn trace(suite: &mut Suite, world: &World) {
    let what = Syscall::trace_read;
    let pinned = syscall::thread_set(Handle::NONE, PRIORITY, 0);
    suite.equal(Syscall::thread_set, "the first CPU", pinned, Ok(()));
    let read = |position| [raw(world.system), 0, position, 0, 0, 0];
    let newest = suite.check(what, "the newest", &read(TRACE_NEWEST), Ok(()));
    let [position, len, _] = newest.results();
    suite.equal(what, "nothing is behind the newest", len, 0);
    let on = [raw(world.system), 1, 0, 0, 0, 0];
    suite.check(Syscall::trace_control, "on", &on, Ok(()));
    // Something to record: the thread blocks.
    time::sleep(time::MILLISECOND);
    let off = [raw(world.system), 0, 0, 0, 0, 0];
    suite.check(Syscall::trace_control, "off", &off, Ok(()));
    let records = suite.check(what, "what was recorded", &read(position), Ok(()));
    let [next, len, lost] = records.results();
    let copied = len / size_of::<TraceRecord>() as u64;
    suite.holds(what, "there is something", copied > 0);
    suite.equal(
        what,
        "positions count records",
        next - position,
        copied + lost,
    );
}
