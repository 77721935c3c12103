//! What is read out of CPUID, of processors and of liars.

use crate::pmu::Claims;
use ipc::abi::monitor::Interface;
use raw_cpuid::{CpuIdReader, CpuIdResult};

/// A processor by its leaves; like a real one, it answers an unknown leaf with its highest basic one.
#[derive(Clone)]
struct Leaves(Vec<(u32, [u32; 4])>);

impl CpuIdReader for Leaves {
    fn cpuid2(&self, leaf: u32, _: u32) -> CpuIdResult {
        let highest = self.0.iter().rfind(|(leaf, _)| *leaf < 0x8000_0000);
        let found = self.0.iter().find(|(known, _)| *known == leaf).or(highest);
        let [eax, ebx, ecx, edx] = found.unwrap().1;
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

const PDCM: u32 = 1 << 15;

fn intel(leaf: [u32; 4]) -> Claims {
    Claims::read(Leaves(vec![
        (0, [0xa, 0, 0, 0]),
        (1, [0, 0, PDCM, 0]),
        (0xa, leaf),
        (0x8000_0000, [0x8000_0001, 0, 0, 0]),
        (0x8000_0001, [0; 4]),
    ]))
}

fn amd(core: bool, highest: u32, leaf: [u32; 4]) -> Claims {
    Claims::read(Leaves(vec![
        (0, [0x10, 0, 0, 0]),
        (1, [0; 4]),
        (0xa, [0; 4]),
        // Looks like the second version, to who does not look at the highest leaf first.
        (0x10, [u32::MAX; 4]),
        (0x8000_0000, [highest, 0, 0, 0]),
        (0x8000_0001, [0, 0, u32::from(core) << 23, 0]),
        (0x8000_0022, leaf),
    ]))
}

#[test]
fn intel_versions_say_which_fixed_counters_there_are() {
    const BITS_48: u32 = 48 << 5;
    for (leaf, interface, fixed) in [
        // Version 1 has none.
        ([0x0730_0201, 0, 0, 0x603], Interface::None, 0),
        ([0x0730_0402, 0, 0, BITS_48 | 3], Interface::Intel, 0b111),
        // Some processors of version 2 say that there are none, and some have but the first.
        ([0x0730_0202, 0, 0, 0], Interface::None, 0),
        ([0x0730_0203, 0, 0, BITS_48 | 1], Interface::None, 0b1),
        // Before version 5 the list means nothing.
        ([0x0830_0804, 0, 0b1111, BITS_48 | 1], Interface::None, 0b1),
        (
            [0x0830_0805, 0, 0b1111, BITS_48 | 1],
            Interface::Intel,
            0b1111,
        ),
        ([0x0830_0805, 0, 0b0010, BITS_48], Interface::Intel, 0b0010),
        ([0x0830_0805, 0, 0b1101, BITS_48], Interface::None, 0b1101),
        // AnyThread's deprecation changes nothing: it is not used.
        (
            [0x0830_0805, 0, 0b10, 1 << 15 | BITS_48],
            Interface::Intel,
            0b10,
        ),
        // Widths that no counter has.
        ([0x0830_0804, 0, 0, 32 << 5 | 3], Interface::None, 0b111),
        ([0x0830_0804, 0, 0, 64 << 5 | 3], Interface::None, 0b111),
        ([0x0830_0804, 0, 0, 3], Interface::None, 0b111),
        (
            [0x0830_0805, 0, u32::MAX, BITS_48 | 31],
            Interface::Intel,
            0xffff,
        ),
    ] {
        let claims = intel(leaf);
        assert_eq!(
            (claims.interface, claims.fixed),
            (interface, fixed),
            "{leaf:x?}"
        );
        assert_eq!(u32::from(claims.version), leaf[0] & 0xff);
        assert_eq!(claims.cycles().is_some(), interface == Interface::Intel);
    }
    let most = intel([0x08ff_ff05, 0, 0, BITS_48 | 3]);
    assert_eq!(most.counters, 8, "as many as have registers");
    assert!(most.may_freeze && most.has_capabilities);
}

#[test]
fn amd_claims_need_the_core_extension_and_the_leaf() {
    const ALL: [u32; 4] = [0b101, 0x16, 0, 0];
    let none = amd(false, 0x8000_0022, ALL);
    assert_eq!(none, Claims::NONE);
    let core = amd(true, 0x8000_0021, ALL);
    assert_eq!((core.interface, core.version), (Interface::AmdCore, 1));
    assert_eq!(
        (core.counters, core.counter_bits, core.may_freeze),
        (6, 48, false)
    );
    let v2 = amd(true, 0x8000_0022, ALL);
    assert_eq!((v2.interface, v2.version), (Interface::AmdCoreV2, 2));
    assert_eq!((v2.counters, v2.may_freeze), (6, true));
    let no_counters = amd(true, 0x8000_0022, [1, 0, 0, 0]);
    assert_eq!(no_counters.interface, Interface::AmdCore);
    let no_freeze = amd(true, 0x8000_0022, [1, 4, 0, 0]);
    assert_eq!((no_freeze.counters, no_freeze.may_freeze), (4, false));
}

#[test]
fn a_leaf_beyond_the_highest_is_not_believed() {
    // Leaf 0AH would be answered with leaf 4.
    let old = Leaves(vec![
        (0, [4, 0, 0, 0]),
        (1, [0; 4]),
        (4, [0x0730_0402, 0, 0, 0x603]),
        (0x8000_0000, [0x8000_0001, 0, 0, 0]),
        (0x8000_0001, [0; 4]),
    ]);
    assert_eq!(Claims::read(old), Claims::NONE);
}
