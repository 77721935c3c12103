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

proptest! {
    #[test]
    fn looking_at_a_function_ends_and_leaves_it_quiet(function in function()) {
        let mut bus = FakeBus::with(function);
        let examined = Function::examine(&mut bus, at(3));
        prop_assert!(bus.reads < 400, "{} reads", bus.reads);
        let Ok(function) = examined else { return Ok(()) };
        if bus.functions[&at(3)].writable[usize::from(COMMAND / 4)] & 4 != 0 {
            prop_assert_eq!(bus.command() & 4, 0);
        }
        if let Interrupts::Messages(msix) = function.interrupts {
            for piece in &function.pieces {
                for span in [msix.table, msix.pending] {
                    let apart = span.base + span.bytes <= piece.base
                        || piece.base + piece.bytes() <= span.base;
                    prop_assert!(apart, "{span:?} {piece:?}");
                }
            }
            prop_assert_eq!(msix.words(&[]).len(), usize::from(msix.entries) * 4);
        }
        for offset in 0..=255 {
            let _ = function.read(&mut bus, offset);
        }
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
