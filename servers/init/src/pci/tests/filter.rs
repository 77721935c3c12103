//! What a driver may do to the configuration of its function.

use ipc::proto::pci::{BUS_MASTER, PciError};

use crate::pci::fake::{FakeBus, FakeFunction, at};
use crate::pci::filter::Readable;
use crate::pci::{COMMAND, Config, Function, capability};

fn card() -> (FakeBus, Function) {
    let mut bus = FakeBus::with(FakeFunction::network_card());
    let function = Function::examine(&mut bus, at(3)).unwrap();
    (bus, function)
}

#[test]
fn the_header_and_the_capabilities_can_be_read_and_nothing_else() {
    let (mut bus, function) = card();
    let readable: Vec<u8> = (0..=255)
        .filter(|&offset| function.read(&mut bus, offset).is_ok())
        .collect();
    let header = 0..0x40;
    // All of the first; not the last word of the second, by which a register could be read.
    let capabilities = (0x40..0x50).chain(0x84..0x94).chain(0x98..0xa4);
    let expected: Vec<u8> = header.chain(capabilities).step_by(4).collect();
    assert_eq!(readable, expected);
    assert_eq!(function.read(&mut bus, 0), Ok(0x1000_1af4));
    assert_eq!(function.read(&mut bus, 2), Err(PciError::Misaligned));
    assert_eq!(function.read(&mut bus, 0x50), Err(PciError::NotReadable));
}

#[test]
fn of_a_vendor_s_capability_no_more_is_read_than_says_what_it_is() {
    for (head, words) in [(0x0214_0009, 5), (0x02ff_0009, 5), (0x01ff_0009, 4), (9, 1)] {
        let mut card = FakeFunction::new(0x1af4, 0x1041);
        card.capabilities(&[(0x40, &[head])]);
        let mut bus = FakeBus::with(card);
        let list = capability::list(&mut bus, at(3));
        let readable = Readable::new(&mut bus, at(3), &list);
        let read = (0x40..=255).filter(|&offset| readable.check(offset).is_ok());
        assert_eq!(read.count(), words, "{head:#x}");
    }
}

#[test]
fn bus_mastering_alone_can_be_written() {
    let (mut bus, function) = card();
    bus.writes.clear();
    let command = function.read(&mut bus, COMMAND).unwrap();
    for offset in 0..=255 {
        for bit in 0..32 {
            let held = bus.read_config(at(3), offset & !3);
            let result = function.write(&mut bus, offset, held ^ 1 << bit);
            let allowed = offset == COMMAND && (bit == 2 || bit >= 16);
            assert_eq!(result.is_ok(), allowed, "offset {offset:#x}, bit {bit}");
        }
    }
    // Nothing of the status was written, and nothing that was refused.
    let clean = |value: u32| value & !BUS_MASTER == command & 0xffff & !BUS_MASTER;
    assert!(!bus.writes.is_empty());
    for write in &bus.writes {
        assert!(write.offset == COMMAND && clean(write.value), "{write:?}");
    }
    let refused = function.write(&mut bus, 0x10, 0);
    assert_eq!(refused, Err(PciError::NotWritable));
    assert_eq!(function.write(&mut bus, 5, 0), Err(PciError::Misaligned));
}

#[test]
fn a_function_that_was_pulled_is_gone() {
    let (mut bus, function) = card();
    bus.functions.remove(&at(3));
    assert_eq!(function.read(&mut bus, 0), Err(PciError::Gone));
    assert_eq!(function.write(&mut bus, COMMAND, 4), Err(PciError::Gone));
    bus.functions.insert(at(3), FakeFunction::new(0x8086, 1));
    assert_eq!(function.write(&mut bus, COMMAND, 4), Err(PciError::Gone));
    assert_eq!(bus.command() & BUS_MASTER, 0);
}
