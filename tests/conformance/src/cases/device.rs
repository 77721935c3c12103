//! Interrupts and ports.

extern crate alloc;

use alloc::vec::Vec;

use ipc::abi::{BY_MESSAGE, Error, Syscall};
use sysroot::{OwnedHandle, syscall};

use crate::suite::Suite;
use crate::world::{World, made, raw};

/// The port that says which PCI configuration register is meant.
const PCI_ADDRESS: u64 = 0xcf8;
/// What it is told: a device of a bus that does not exist, with bits in both halves.
const PCI_BUS: u64 = 0x0012_3400;

pub fn run(suite: &mut Suite) {
    let world = World::new();
    lines(suite, &world);
    ports(suite, &world);
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

/// What was written to a port is read from there, byte by byte.
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
    let of_33_bits = 1 << 32 | PCI_BUS;
    suite.check(
        Syscall::port_write,
        "four bytes",
        &write(of_33_bits),
        Ok(()),
    );
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
