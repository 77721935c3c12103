//! What CPUID says: the processor below, with these counters and an x2APIC, and without what the shim itself uses.
//!
//! Intel SDM volume 2, CPUID; AMD64 manual volume 3, appendix E.

use crate::WIDTH;
use crate::amd::COUNTERS;
use crate::intel::FIXED;
use crate::setup::{Interface, Setup};

/// EAX, EBX, ECX and EDX.
pub type Leaf = [u32; 4];

const MONITORING: u32 = 0xa;
const EXTENDED: u32 = 0x8000_0000;
const SVM: u32 = 0x8000_000a;
const MONITORING_V2: u32 = 0x8000_0022;

/// Family, model and stepping of a processor that has this interface: Skylake-SP, Rome and Genoa.
const fn signature(interface: Interface) -> u32 {
    match interface {
        Interface::Intel => 0x0005_0654,
        Interface::Amd => 0x0083_0f10,
        Interface::AmdV2 => 0x00a1_0f11,
    }
}

/// The vendor's name, as EBX, ECX and EDX of leaf 0 have it.
fn vendor(interface: Interface) -> [u32; 3] {
    let name = match interface {
        Interface::Intel => b"GenuntelineI",
        Interface::Amd | Interface::AmdV2 => b"AuthcAMDenti",
    };
    let mut words = [0; 3];
    for (word, bytes) in words.iter_mut().zip(name.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

/// The answer for a leaf; `native` answers for the processor below.
pub fn answer(setup: Setup, leaf: u32, sub: u32, native: impl Fn(u32, u32) -> Leaf) -> Leaf {
    let interface = setup.interface;
    let is_amd = interface != Interface::Intel;
    let highest = native(leaf & EXTENDED, 0)[0];
    let mut answer = if leaf <= highest {
        native(leaf, sub)
    } else {
        [0; 4]
    };
    match leaf {
        0 => {
            answer[0] = answer[0].max(MONITORING);
            answer[1..].copy_from_slice(&vendor(interface));
        }
        1 => {
            const X2APIC: u32 = 1 << 21;
            // There is a register of performance capabilities.
            const PDCM: u32 = 1 << 15;
            answer[0] = signature(interface);
            answer[2] = answer[2] & !PDCM | X2APIC;
            if !is_amd {
                answer[2] |= PDCM;
            }
        }
        MONITORING if is_amd => answer = [0; 4],
        // Version 2, and no counters but the fixed ones.
        MONITORING => answer = [2, 0, 0, WIDTH << 5 | FIXED],
        EXTENDED => {
            if interface == Interface::AmdV2 {
                answer[0] = answer[0].max(MONITORING_V2);
            }
            let vendor = if is_amd { vendor(interface) } else { [0; 3] };
            answer[1..].copy_from_slice(&vendor);
        }
        0x8000_0001 => {
            const SVM_BIT: u32 = 1 << 2;
            const CORE_EXTENSION: u32 = 1 << 23;
            answer[2] &= !(SVM_BIT | CORE_EXTENSION);
            if is_amd {
                answer[0] = signature(interface);
                answer[2] |= CORE_EXTENSION;
            }
        }
        SVM => answer = [0; 4],
        MONITORING_V2 if interface == Interface::AmdV2 => answer = [1, COUNTERS, 0, 0],
        _ => {}
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All ones up to the highest leaves, which an unknown leaf gets the last of.
    fn native(leaf: u32, _: u32) -> Leaf {
        match leaf {
            0 => [0xd, 1, 1, 1],
            EXTENDED => [EXTENDED + 0xa, 1, 1, 1],
            _ => [u32::MAX; 4],
        }
    }

    fn name(leaf: Leaf) -> String {
        let [_, b, c, d] = leaf;
        let bytes = [b, d, c].map(u32::to_le_bytes).concat();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn each_interface_is_told_and_no_other() {
        for setup in Setup::all() {
            let answer = |leaf| answer(setup, leaf, 0, native);
            let is_amd = setup.interface != Interface::Intel;
            let vendor = if is_amd {
                "AuthenticAMD"
            } else {
                "GenuineIntel"
            };
            assert_eq!(name(answer(0)), vendor);
            assert_eq!(answer(0xa)[0], if is_amd { 0 } else { 2 });
            assert_eq!(answer(0x8000_0001)[2] >> 23 & 1, u32::from(is_amd));
            let v2 = setup.interface == Interface::AmdV2;
            assert_eq!(answer(EXTENDED)[0] >= MONITORING_V2, v2);
            assert_eq!(answer(MONITORING_V2)[0], u32::from(v2));
        }
    }

    #[test]
    fn what_the_shim_uses_is_hidden_and_an_unknown_leaf_is_empty() {
        let setup = Setup::parse("amd2").unwrap();
        let answer = |leaf| answer(setup, leaf, 0, native);
        assert_eq!(answer(0x8000_0001)[2] & 4, 0);
        assert_eq!(answer(SVM), [0; 4]);
        assert_eq!(answer(0x8000_0021), [0; 4]);
        assert_eq!(answer(0xd), [u32::MAX; 4]);
        assert_ne!(answer(1)[2] & 1 << 21, 0);
    }
}
