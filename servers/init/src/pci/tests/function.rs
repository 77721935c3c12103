//! A function from being found to being driven, and back.

use crate::fake::FakeMachine;
use crate::pci::fake::{FakeBus, FakeFunction, at};
use crate::pci::function::{Interrupts, Unusable};
use crate::pci::msix::{Message, Span};
use crate::pci::pieces::{self, Piece};
use crate::pci::{BARS, CAPABILITIES, COMMAND, Config, Function, HEADER};

const MESSAGE: Message = Message {
    address: 0x1_fee0_1000,
    data: 0x41,
};

fn examine(function: FakeFunction) -> (Result<Function, Unusable>, FakeBus) {
    let mut bus = FakeBus::with(function);
    (Function::examine(&mut bus, at(3)), bus)
}

#[test]
fn a_card_is_measured_and_left_as_it_was_but_quiet() {
    let mut card = FakeFunction::network_card();
    card.words[1] |= 0x0107;
    let (function, bus) = examine(card.clone());
    let function = function.unwrap();
    // The page of the table is not among them, nor are the ports.
    let registers = Piece {
        bar: 4,
        offset: 0,
        base: 0xfe00_0000,
        pages: 4,
    };
    assert_eq!(function.pieces, [registers]);
    let Interrupts::Messages(msix) = function.interrupts else {
        panic!("{:?}", function.interrupts);
    };
    let span = |base, bytes| Span { base, bytes };
    assert_eq!(msix.entries, 3);
    assert_eq!(msix.table, span(0xfebf_1000, 48));
    assert_eq!(msix.pending, span(0xfebf_1800, 8));
    // Bus mastering and decoding are off, the line is off, other bits are kept.
    assert_eq!(bus.command(), 0x0500);
    for index in 0..6 {
        let word = usize::from(BARS / 4) + index;
        assert_eq!(bus.functions[&at(3)].words[word], card.words[word]);
    }
}

#[test]
fn nothing_answers_at_an_address_that_is_measured() {
    let mut card = FakeFunction::network_card();
    card.words[1] |= 7;
    let (_, bus) = examine(card);
    let bar = BARS..BARS + 24;
    let first = bus
        .writes
        .iter()
        .position(|write| bar.contains(&write.offset));
    let before = &bus.writes[..first.unwrap()];
    let command = before.iter().rev().find(|write| write.offset == COMMAND);
    assert_eq!(command.unwrap().value & 7, 0);
}

#[test]
fn registers_of_every_size_and_place() {
    let bar = |value: u32, mask: u32| {
        let mut card = FakeFunction::new(1, 1);
        card.bar(0, value, mask);
        examine(card).0
    };
    let pages = |function: Result<Function, Unusable>| function.unwrap().pieces[0].pages;
    assert_eq!(pages(bar(0xf000_0000, 0xffff_f000)), 1);
    assert_eq!(pages(bar(0xf000_0008, 0xf000_0008)), 1 << 16);
    // Less than a page may share it.
    assert_eq!(bar(0xf000_0000, 0xffff_ff00).unwrap().pieces, []);
    assert_eq!(bar(0, 0xffff_f000), Err(Unusable::NoAddress(0)));
    // Not a power of two, and an address that is not a multiple of the size.
    assert_eq!(bar(0xf000_0000, 0xffff_5000), Err(Unusable::BadBar(0)));
    assert_eq!(bar(0xf000_1000, 0xffff_c000), Err(Unusable::BadBar(0)));
    // Kinds that do not exist any more, or never did.
    for kind in [2, 6] {
        assert_eq!(
            bar(0xf000_0000 | kind, 0xffff_f000),
            Err(Unusable::BadBar(0))
        );
    }
    let mut above = FakeFunction::new(1, 1);
    above.bar(2, 0xc, 0xc000_000c);
    above.bar(3, 0x10, 0xffff_fff0);
    above.writable[usize::from(BARS / 4) + 3] = !0;
    let pieces = examine(above.clone()).0.unwrap().pieces;
    assert_eq!((pieces[0].base, pieces[0].bytes()), (0x10 << 32, 1 << 30));
    // Behind the end of all memory.
    above.words[usize::from(BARS / 4) + 3] = 0x1000;
    assert_eq!(examine(above).0, Err(Unusable::BadBar(2)));
    let mut last = FakeFunction::new(1, 1);
    last.bar(5, 0xf000_0004, 0xffff_f004);
    assert_eq!(examine(last).0, Err(Unusable::BadBar(5)));
}

#[test]
fn a_function_that_makes_no_sense_has_no_driver() {
    let mut bridge = FakeFunction::network_card();
    bridge.words[usize::from(HEADER / 4)] = 1 << 16;
    assert_eq!(examine(bridge).0, Err(Unusable::NotADevice));

    let mut stuck = FakeFunction::network_card();
    stuck.words[usize::from(BARS / 4) + 4] = 0xfe00_000c;
    stuck.words[usize::from(BARS / 4) + 5] = 1;
    stuck.writable[usize::from(BARS / 4) + 5] = 2;
    assert!(examine(stuck).0.is_err());

    let mut over = FakeFunction::network_card();
    over.bar(2, 0xfebf_1000, 0xffff_f000);
    assert_eq!(examine(over).0, Err(Unusable::BadBar(2)));

    for table in [0x0000_0002, 0x0000_0fd9, 0xffff_fff9, 0x0000_0007] {
        let mut outside = FakeFunction::network_card();
        outside.words[0x9c / 4] = table;
        assert_eq!(examine(outside).0, Err(Unusable::BadTable), "{table:#x}");
    }
    let mut cut = FakeFunction::network_card();
    cut.words[0xfc / 4] = 0x11;
    cut.words[usize::from(CAPABILITIES / 4)] = 0xfc;
    assert_eq!(examine(cut).0, Err(Unusable::BadTable));
}

#[test]
fn without_messages_the_firmware_says_the_line() {
    let line = |word: u32| {
        let mut card = FakeFunction::new(1, 1);
        card.words[usize::from(super::super::INTERRUPT / 4)] = word;
        examine(card).0.unwrap().interrupts
    };
    assert_eq!(line(0x010b), Interrupts::Line(11));
    assert_eq!(line(0x0401), Interrupts::Line(1));
    for word in [0x000b, 0x0100, 0x0110, 0x01ff, 0x050b] {
        assert_eq!(line(word), Interrupts::None, "{word:#x}");
    }
}

#[test]
fn pages_of_a_table_are_cut_out_wherever_they_are() {
    let bar = crate::pci::bar::Bar {
        index: 2,
        base: 0x10_0000,
        bytes: 0x8000,
    };
    let pieces = |spans: &[(u64, u64)]| {
        let spans: Vec<_> = spans
            .iter()
            .map(|&(base, bytes)| Span { base, bytes })
            .collect();
        let pieces = pieces::of(&bar, &spans);
        pieces
            .iter()
            .map(|piece| (piece.offset, piece.pages))
            .collect::<Vec<_>>()
    };
    assert_eq!(pieces(&[]), [(0, 8)]);
    assert_eq!(pieces(&[(0x10_0000, 16)]), [(0x1000, 7)]);
    assert_eq!(pieces(&[(0x10_7fff, 1)]), [(0, 7)]);
    assert_eq!(pieces(&[(0x10_2ff8, 16)]), [(0, 2), (0x4000, 4)]);
    assert_eq!(
        pieces(&[(0x10_4000, 8), (0x10_1000, 8)]),
        [(0, 1), (0x2000, 2), (0x5000, 3)]
    );
    assert_eq!(
        pieces(&[(0x10_1000, 0x3000), (0x10_2000, 8)]),
        [(0, 1), (0x4000, 4)]
    );
    assert_eq!(pieces(&[(0x10_0000, 0x8000)]), []);
    assert_eq!(pieces(&[(0x20_0000, 8), (0x0f_f000, 0x1000)]), [(0, 8)]);
}

#[test]
fn neither_the_table_nor_the_pending_bits_are_given() {
    let mut card = FakeFunction::network_card();
    card.words[0x9c / 4] = 0x1004;
    card.words[0xa0 / 4] = 0x2ffc;
    let pieces = examine(card).0.unwrap().pieces;
    let pieces: Vec<_> = pieces
        .iter()
        .map(|piece| (piece.bar, piece.offset, piece.pages))
        .collect();
    assert_eq!(pieces, [(1, 0, 1), (4, 0, 1), (4, 0x3000, 1)]);
}

#[test]
fn a_driver_gets_messages_and_no_way_to_change_them() {
    let mut machine = FakeMachine::new();
    machine.0.borrow_mut().bus = FakeBus::with(FakeFunction::network_card());
    let function = Function::examine(&mut machine, at(3)).unwrap();
    function.ready(&mut machine, &[MESSAGE]).unwrap();
    let ledger = machine.0.borrow();
    let (address, words) = &ledger.bus.stored[0];
    assert_eq!(*address, 0xfebf_1000);
    // One entry that is given, two that are masked.
    let entries = [0xfee0_1000, 1, 0x41, 0, 0, 0, 0, 1, 0, 0, 0, 1];
    assert_eq!(words[..], entries);
    // Answers at its memory, masters nothing, and its line is off.
    assert_eq!(ledger.bus.command(), 0x0402);
    assert_eq!(ledger.bus.functions[&at(3)].words[0x98 / 4] >> 30, 0b10);
}

#[test]
fn a_function_taken_from_its_driver_does_nothing_any_more() {
    let mut machine = FakeMachine::new();
    machine.0.borrow_mut().bus = FakeBus::with(FakeFunction::network_card());
    let function = Function::examine(&mut machine, at(3)).unwrap();
    function.ready(&mut machine, &[MESSAGE]).unwrap();
    let command = function.read(&mut machine, COMMAND).unwrap();
    function.write(&mut machine, COMMAND, command | 4).unwrap();
    assert_eq!(machine.0.borrow().bus.command(), 0x0406);
    function.quiesce(&mut machine);
    assert_eq!(machine.0.borrow().bus.command(), 0x0402);
    let msix = machine.read_config(at(3), 0x98);
    assert_eq!(msix >> 30, 0b01, "messages are off, and masked");
}
