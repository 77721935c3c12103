//! Reading a program's memory: exactly what the tables allow, and nothing outside RAM.

use super::fake::{ALL, Fake, LARGE, PRESENT, USER};
use crate::base::addr::{Frame, PhysAddr};
use crate::profile::translate::UserMemory;
use ipc::abi::layout::USER_END;
use proptest::prelude::*;

const KIB4: u64 = 1 << 12;
const MIB2: u64 = 1 << 21;
const GIB1: u64 = 1 << 30;

/// A page of this size at `at`, backed from physical `to` on, with RAM in its frame at `offset`.
fn with_page(bytes: u64, at: u64, to: u64, offset: u64, bits: u64) -> (Fake, Frame) {
    let mut fake = Fake::new();
    let root = fake.frame(1);
    fake.map(root, at, bytes, to, bits);
    let word = to + offset;
    assert_eq!(fake.frame((word >> 12) as u32), Frame((word >> 12) as u32));
    fake.set(word, 0xfeed);
    (fake, root)
}

#[test]
fn every_page_size_is_read() {
    for (bytes, offset) in [(KIB4, 0xff8), (MIB2, 0x1f_f008), (GIB1, 0x3fff_f010)] {
        let at = 0x7000_0000_0000 + 3 * bytes;
        let (fake, root) = with_page(bytes, at, 0x40_0000_0000, offset, ALL);
        let mut memory = UserMemory::new(&fake, root);
        assert_eq!(memory.read(at + offset), Some(0xfeed), "{bytes:#x}");
        assert_eq!(memory.read(at + offset - 4), None, "misaligned");
        assert_eq!(memory.read(at + bytes), None, "the next page");
        assert_eq!(memory.read(at - 8), None, "the page before");
    }
}

#[test]
fn a_large_pages_attribute_bits_are_no_address() {
    // Bit 12 is PAT in a large page's entry.
    let (mut fake, root) = with_page(MIB2, 0, 0x60_0000, 8, ALL);
    let pointer = root.start().0;
    let middle = |fake: &Fake, table: u64| fake.read(PhysAddr(table)) & !0xfff;
    let directory = middle(&fake, middle(&fake, pointer));
    fake.set(directory, 0x60_0000 | ALL | LARGE | 1 << 12);
    assert_eq!(UserMemory::new(&fake, root).read(8), Some(0xfeed));
}

#[test]
fn a_translation_is_reused_within_its_page_and_not_beyond() {
    let (mut fake, root) = with_page(KIB4, 0x5000, 0x9000, 0, ALL);
    fake.map(root, 0x6000, KIB4, 0x9000, ALL);
    let mut memory = UserMemory::new(&fake, root);
    let mut cost = |at| {
        let before = fake.count();
        memory.read(at).unwrap();
        fake.count() - before
    };
    assert_eq!([cost(0x5000), cost(0x5ff8), cost(0x5008)], [5, 1, 1]);
    assert_eq!([cost(0x6000), cost(0x6008)], [5, 1]);
}

#[test]
fn supervisor_pages_devices_and_the_upper_half_are_not_read() {
    for bits in [0, PRESENT, USER] {
        let (fake, root) = with_page(KIB4, 0x5000, 0x9000, 0, bits);
        assert_eq!(UserMemory::new(&fake, root).read(0x5000), None);
    }
    // A large page of which one frame is RAM.
    let (fake, root) = with_page(MIB2, 0, 0xfee0_0000, 0x3000, ALL);
    let mut memory = UserMemory::new(&fake, root);
    assert_eq!(memory.read(0x3000), Some(0xfeed));
    assert_eq!(memory.read(0x4000), None);
    // Frames beyond 32 bits of frame number must not be cut down to ones that are RAM.
    let (fake, root) = with_page(KIB4, 0x5000, 0x9000, 0, ALL);
    let mut far = Fake::new();
    let far_root = far.frame(1);
    far.frame(9);
    far.map(far_root, 0x5000, KIB4, 0x9000 | 1 << 44, ALL);
    assert_eq!(UserMemory::new(&far, far_root).read(0x5000), None);
    let mut memory = UserMemory::new(&fake, root);
    for at in [
        USER_END,
        USER_END + 0x1000,
        1 << 47,
        0xffff_8000_0000_5000,
        u64::MAX - 7,
    ] {
        assert_eq!(memory.read(at), None);
    }
    assert_eq!(fake.count(), 0, "refused before any table was read");
}

#[test]
fn a_forbidden_level_forbids_all_below() {
    for shift in [39, 30, 21] {
        let mut fake = Fake::new();
        let root = fake.frame(1);
        fake.poke(root, 0x5000, 7);
        assert_eq!(UserMemory::new(&fake, root).read(0x5000), Some(7));
        let mut table = root.start().0;
        for level in [39, 30, 21] {
            let entry = fake.read(PhysAddr(table));
            if level == shift {
                fake.set(table, entry & !USER);
                break;
            }
            table = entry & !0xfff;
        }
        assert_eq!(UserMemory::new(&fake, root).read(0x5000), None, "{shift}");
    }
}

#[test]
fn a_page_bit_in_the_root_is_refused() {
    let mut fake = Fake::new();
    let root = fake.frame(0);
    fake.set(0, LARGE | ALL);
    assert_eq!(UserMemory::new(&fake, root).read(0), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Tables of any content: the fake fails the test at a read outside RAM, and no address costs more than twice
    /// the tables, and the word.
    #[test]
    fn hostile_tables_are_survived(
        entries in prop::collection::vec((0u64..6 * 512, 0u64..8, any::<u64>()), 1..80),
        addresses in prop::collection::vec(any::<u64>(), 1..20),
        root in 0u32..8,
    ) {
        let mut fake = Fake::new();
        for _ in 0..6 {
            fake.frame(0);
        }
        for (slot, frame, noise) in entries {
            // Mostly present, mostly to one of the tables or just beyond; sometimes anything at all.
            let entry = if noise % 8 == 0 { noise } else { frame << 12 | ALL | noise & LARGE & (noise >> 8) };
            fake.set(slot * 8, entry);
        }
        let mut memory = UserMemory::new(&fake, Frame(root));
        for address in addresses {
            // Few distinct indices, so that the entries are met.
            let at = address & 0x7fc0_601c_0ff8;
            for at in [at, address] {
                let before = fake.count();
                let _ = memory.read(at);
                // What is not of the usual kind is found out at its own level, and then looked up from the root.
                prop_assert!(fake.count() - before <= 4 + 5);
            }
        }
    }
}
