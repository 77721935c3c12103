//! Interrupts, ports, the log and the state of the system.

extern crate alloc;

use alloc::vec::Vec;

use ipc::abi::info::{CpuInfo, InfoKind, MemoryInfo, Pool};
use ipc::abi::inspect::{StackKind, mapping_index, page_index, stack_index};
use ipc::abi::layout::INTERRUPTS;
use ipc::abi::trace::{TRACE_NEWEST, TraceRecord};
use ipc::abi::{BY_MESSAGE, Error, Handle, Syscall};
use sysroot::{OwnedHandle, record, syscall, time};

use crate::buffer;
use crate::suite::Suite;
use crate::world::{PRIORITY, World, made, raw};

/// Calls that are made to be counted.
const CALLS: u64 = 10_000;
/// The port that says which PCI configuration register is meant, and a device of a bus that does not exist; its lower half has bits too.
const PCI_ADDRESS: u64 = 0xcf8;
const PCI_BUS: u64 = 0x0012_3400;

pub fn run(suite: &mut Suite, cpus: u64) {
    let world = World::new();
    lines(suite, &world);
    ports(suite, &world);
    log(suite, &world);
    state(suite, &world, cpus);
    trace(suite, &world);
}

/// Lines that devices signal by message run out; one that is let go can be taken again.
fn lines(suite: &mut Suite, world: &World) {
    let what = Syscall::interrupt_create;
    let notification = world.notification.raw();
    let mut taken = Vec::new();
    let full = loop {
        match syscall::interrupt_create(world.system, BY_MESSAGE, notification, 1) {
            Ok((line, address, data)) => {
                let there = address >> 20 == 0xfee && data != 0;
                suite.holds(what, "where a device signals it", there);
                taken.push(OwnedHandle::new(line));
            }
            Err(error) => break error,
        }
    };
    suite.equal(what, "the last line", full, Error::LimitReached);
    let create = [raw(world.system), BY_MESSAGE, raw(notification), 1, 0, 0];
    suite.check(what, "no line left", &create, Err(Error::LimitReached));
    drop(taken);
    for _ in 0..2 {
        let wired = [raw(world.system), 9, raw(notification), 1, 0, 0];
        let returned = suite.check(what, "a line that was let go", &wired, Ok(()));
        suite.equal(
            what,
            "a wired line has no message",
            &returned.results()[1..],
            &[0, 0][..],
        );
        super::close(suite, what, super::handle(&returned));
    }
}

/// What was written to the diagnostic port is read from there, byte by byte.
fn ports(suite: &mut Suite, world: &World) {
    let ports = raw(world.ports.raw());
    // Page registers of the DMA controller: they keep what they are given.
    let write = [ports, 1, 1, 0x1_5a, 0, 0];
    suite.check(Syscall::port_write, "more than fits", &write, Ok(()));
    let read = suite.check(
        Syscall::port_read,
        "what was written",
        &[ports, 1, 1, 0, 0, 0],
        Ok(()),
    );
    suite.equal(
        Syscall::port_read,
        "its lowest byte",
        read.registers[0],
        0x5a,
    );
    let wide = [ports, 1, 2, 0x1_1234, 0, 0];
    suite.check(Syscall::port_write, "two bytes", &wide, Ok(()));
    let each = [(1, 1), (2, 1), (1, 2)].map(|(offset, bytes)| {
        let read = [ports, offset, bytes, 0, 0, 0];
        suite.check(Syscall::port_read, "of two bytes", &read, Ok(()))
    });
    let each = each.map(|read| read.registers[0]);
    let want = [0x34, 0x12, 0x1234];
    suite.equal(Syscall::port_write, "both are written", each, want);
    // A register that is written and read whole alone.
    let address = syscall::ports_create(world.system, PCI_ADDRESS, 4);
    let address = OwnedHandle::new(made("ports", address));
    let write = |value| [raw(address.raw()), 0, 4, value, 0, 0];
    let of_five = 1 << 32 | PCI_BUS;
    suite.check(Syscall::port_write, "four bytes", &write(of_five), Ok(()));
    let read = [raw(address.raw()), 0, 4, 0, 0, 0];
    let read = suite.check(Syscall::port_read, "of four bytes", &read, Ok(()));
    let read = read.registers[0];
    suite.equal(Syscall::port_write, "four are written", read, PCI_BUS);
    suite.check(Syscall::port_write, "four zeroes", &write(0), Ok(()));
    suite.check(
        Syscall::port_read,
        "two bytes at the last",
        &[ports, 3, 2, 0, 0, 0],
        Err(Error::BadArgument),
    );
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
