//! Functions made at random: whatever they say of themselves, looking at them ends, and gives no page of a table away.

use proptest::prelude::*;

use crate::pci::fake::{FakeBus, FakeFunction, at};
use crate::pci::function::Interrupts;
use crate::pci::{BARS, CAPABILITIES, COMMAND, Function, HEADER, capability};

/// Words and masks at random, with a header that is a device's and bits that often lead somewhere.
fn function() -> impl Strategy<Value = FakeFunction> {
    let words = proptest::array::uniform32(any::<u32>());
    let masks = proptest::collection::vec(
        prop_oneof![Just(0), Just(!0), Just(!0xfff), any::<u32>()],
        64,
    );
    let bar = || (0..16_u32, 0..0x20_u32, 12..20_u32);
    let bars = proptest::collection::vec(bar(), 6);
    (words, words2(), masks, bars).prop_map(|(low, high, masks, bars)| {
        let mut function = FakeFunction::new(0x1af4, 0x1000);
        function.words[..32].copy_from_slice(&low);
        function.words[32..].copy_from_slice(&high);
        function.writable.copy_from_slice(&masks);
        function.words[usize::from(HEADER / 4)] &= !(0x7f << 16);
        for (index, (flags, base, size)) in bars.into_iter().enumerate() {
            let mask = !((1_u32 << size) - 1);
            function.words[usize::from(BARS / 4) + index] = (base << 19 & mask) | flags;
            function.writable[usize::from(BARS / 4) + index] = mask;
        }
        function
    })
}

fn words2() -> impl Strategy<Value = [u32; 32]> {
    let link = (
        any::<u8>(),
        prop_oneof![Just(0x11_u8), Just(9), any::<u8>()],
        any::<u16>(),
    );
    let word = link.prop_map(|(next, id, rest)| u32::from_le_bytes([id, next, rest as u8, 0]));
    proptest::array::uniform32(prop_oneof![word, 0..0x2000_u32])
}

/// A function whose registers make sense, with a table and pending bits somewhere in or out of them.
fn with_table() -> impl Strategy<Value = FakeFunction> {
    let place = || (0..6_u32, 0..0x5000_u32);
    (0..0x800_u32, place(), place()).prop_map(|(last, table, pending)| {
        let mut function = FakeFunction::new(0x1af4, 0x1000);
        for index in 0..6 {
            function.bar(index, 0xf000_0000 + ((index as u32) << 16), 0xffff_c000);
        }
        let word = |(bar, offset): (u32, u32)| offset & !7 | bar;
        let words = [0x11 | last << 16, word(table), word(pending)];
        function.capabilities(&[(0x40, &words)]);
        function
    })
}

/// Looks at a function: that ends, the function is quiet, and no page of a table is given away.
fn look(function: FakeFunction) -> Result<(), TestCaseError> {
    let mut bus = FakeBus::with(function);
    let examined = Function::examine(&mut bus, at(3));
    prop_assert!(bus.reads < 400, "{} reads", bus.reads);
    let Ok(function) = examined else {
        return Ok(());
    };
    if bus.functions[&at(3)].writable[usize::from(COMMAND / 4)] & 4 != 0 {
        prop_assert_eq!(bus.command() & 4, 0);
    }
    if let Interrupts::Messages(msix) = function.interrupts {
        for piece in &function.pieces {
            for span in [msix.table, msix.pending] {
                let apart =
                    span.base + span.bytes <= piece.base || piece.base + piece.bytes() <= span.base;
                prop_assert!(apart, "{span:?} {piece:?}");
            }
        }
        prop_assert_eq!(msix.words(&[]).len(), usize::from(msix.entries) * 4);
    }
    for offset in 0..=255 {
        let _ = function.read(&mut bus, offset);
    }
    Ok(())
}

proptest! {
    #[test]
    fn whatever_a_function_is_looking_at_it_ends(function in function()) {
        look(function)?;
    }

    #[test]
    fn no_page_of_a_table_is_given_away(function in with_table()) {
        look(function)?;
    }

    #[test]
    fn every_list_of_capabilities_ends(words in proptest::array::uniform32(any::<u32>())) {
        let mut function = FakeFunction::new(1, 1);
        function.words[1] = 1 << 20;
        function.words[32..].copy_from_slice(&words);
        function.words[usize::from(CAPABILITIES / 4)] = 0x80 | words[0] & 0xff;
        let mut bus = FakeBus::with(function);
        let list = capability::list(&mut bus, at(3));
        prop_assert!(list.len() <= 48);
        let mut offsets: Vec<_> = list.iter().map(|capability| capability.offset).collect();
        offsets.sort_unstable();
        offsets.dedup();
        prop_assert_eq!(offsets.len(), list.len());
    }
}
