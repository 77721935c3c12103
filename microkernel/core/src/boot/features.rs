//! What the processor must have, and what is used where it is there.
//!
//! A leaf of CPUID beyond the highest one returns another leaf's data, which then looks like features (Intel SDM, volume 2,
//! CPUID); [`Guarded`] answers zeros for those, and everything here reads through it.

use raw_cpuid::{CpuId, CpuIdReader, CpuIdResult};

/// A CPUID reader that knows no leaf beyond the highest of its group.
#[derive(Clone)]
pub struct Guarded<R>(pub R);

impl<R: CpuIdReader> CpuIdReader for Guarded<R> {
    fn cpuid2(&self, leaf: u32, sub: u32) -> CpuIdResult {
        const GROUP: u32 = 0xffff_0000;
        const EXTENDED: u32 = 0x8000_0000;
        let group = leaf & GROUP;
        let highest = self.0.cpuid2(group, 0).eax;
        let known =
            (group == 0 || group == EXTENDED) && highest & GROUP == group && leaf <= highest;
        if known {
            self.0.cpuid2(leaf, sub)
        } else {
            CpuIdResult {
                eax: 0,
                ebx: 0,
                ecx: 0,
                edx: 0,
            }
        }
    }
}

/// What is used where it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Supervisor-mode execution prevention.
    pub smep: bool,
    /// Supervisor-mode access prevention.
    pub smap: bool,
    /// User-mode instruction prevention.
    pub umip: bool,
    /// Machine-check exceptions.
    pub machine_check: bool,
    /// 1 GiB pages.
    pub huge_pages: bool,
    /// x2APIC mode.
    pub x2apic: bool,
    /// The APIC timer can be given a TSC value.
    pub tsc_deadline: bool,
    /// The TSC runs at one rate whatever the processor does.
    pub invariant_tsc: bool,
    /// The processor says, by the register IA32_ARCH_CAPABILITIES, what it is not vulnerable to.
    pub arch_capabilities: bool,
    /// An Intel processor: vulnerable to Meltdown unless it says that it is not.
    pub intel: bool,
}

/// A feature that the kernel cannot do without, and this processor lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing(pub &'static str);

/// Finds out what the processor has.
///
/// # Errors
/// The first feature missing of those the kernel needs.
pub fn check<R: CpuIdReader>(reader: R) -> Result<Features, Missing> {
    let reader = Guarded(reader);
    let cpuid = CpuId::with_cpuid_reader(reader.clone());
    let basic = cpuid.get_feature_info().ok_or(Missing("CPUID features"))?;
    let extended = cpuid
        .get_extended_processor_and_feature_identifiers()
        .ok_or(Missing("extended CPUID features"))?;
    // `boot.s` has checked the first five: it needs four of them itself, and CMOV may be anywhere in compiled code.
    let needed = [
        (extended.has_64bit_mode(), "64-bit mode"),
        (extended.has_execute_disable(), "no-execute pages (NX)"),
        (basic.has_msr(), "model-specific registers"),
        (basic.has_pae(), "physical address extension (PAE)"),
        (basic.has_cmov(), "conditional moves (CMOV)"),
        (basic.has_cmpxchg8b(), "CMPXCHG8B"),
        (extended.has_syscall_sysret(), "SYSCALL"),
        (basic.has_tsc(), "a time-stamp counter"),
        (basic.has_apic(), "a local APIC"),
        (basic.has_pge(), "global pages"),
        (basic.has_fxsave_fxstor(), "FXSAVE (for CR4.OSFXSR)"),
        (basic.has_sse(), "SSE (for LFENCE)"),
        (basic.has_sse2(), "SSE2 (for LFENCE)"),
    ];
    if let Some((_, name)) = needed.iter().find(|(present, _)| !present) {
        return Err(Missing(name));
    }
    let more = cpuid.get_extended_feature_info();
    let more = |has: fn(&raw_cpuid::ExtendedFeatures) -> bool| more.as_ref().is_some_and(has);
    Ok(Features {
        smep: more(|f| f.has_smep()),
        smap: more(|f| f.has_smap()),
        umip: more(|f| f.has_umip()),
        machine_check: basic.has_mce(),
        huge_pages: extended.has_1gib_pages(),
        x2apic: basic.has_x2apic(),
        tsc_deadline: basic.has_tsc_deadline(),
        invariant_tsc: cpuid
            .get_advanced_power_mgmt_info()
            .is_some_and(|power| power.has_invariant_tsc()),
        arch_capabilities: reader.cpuid2(7, 0).edx >> 29 & 1 == 1,
        intel: cpuid
            .get_vendor_info()
            .is_some_and(|vendor| vendor.as_str() == "GenuineIntel"),
    })
}

/// Whether programs could read kernel memory by Meltdown, which Sonde does nothing against: on Intel's processors, unless they say that they are
/// not vulnerable. `capabilities` is what IA32_ARCH_CAPABILITIES holds, where it exists; its bit 0 (RDCL_NO) says so (SDM volume 4,
/// table of the architectural MSRs; rogue data cache load is Intel's name for it). AMD's are not vulnerable ("An Update on AMD Processor
/// Security", January 2018, variant 3). Intel's that are too old to say it and execute in order are named without need.
///
/// This is the one place that decides it: the log and the information page have the answer from here.
#[must_use]
pub const fn needs_page_table_isolation(features: Features, capabilities: u64) -> bool {
    features.intel && !(features.arch_capabilities && capabilities & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A processor by its leaves; like a real one, it answers an unknown leaf with its highest basic one.
    #[derive(Clone)]
    struct Fake(Vec<(u32, [u32; 4])>);

    impl CpuIdReader for Fake {
        fn cpuid2(&self, leaf: u32, _: u32) -> CpuIdResult {
            let highest_basic = self.0.iter().rfind(|(l, _)| *l < 0x8000_0000);
            let found = self.0.iter().find(|(l, _)| *l == leaf).or(highest_basic);
            let [eax, ebx, ecx, edx] = found.unwrap().1;
            CpuIdResult { eax, ebx, ecx, edx }
        }
    }

    /// What is needed, by bit (Intel SDM volume 2, CPUID, leaves 1 and 0x80000001).
    const LEAF1_EDX: [(u32, &str); 10] = [
        (4, "time-stamp"),
        (5, "model-specific"),
        (6, "PAE"),
        (8, "CMPXCHG8B"),
        (9, "APIC"),
        (13, "global pages"),
        (15, "CMOV"),
        (24, "FXSAVE"),
        (25, "SSE "),
        (26, "SSE2"),
    ];
    const EXT1_EDX: [(u32, &str); 3] = [(11, "SYSCALL"), (20, "NX"), (29, "64-bit")];

    fn word(bits: &[(u32, &str)]) -> u32 {
        bits.iter().map(|(bit, _)| 1 << bit).sum()
    }

    fn fake() -> Fake {
        Fake(vec![
            (0, [1, 0x756e_6547, 0x6c65_746e, 0x4965_6e69]),
            (1, [0x0666, 0, u32::MAX, word(&LEAF1_EDX)]),
            (0x8000_0000, [0x8000_0001, 0, 0, 0]),
            (0x8000_0001, [0, 0, 0, word(&EXT1_EDX)]),
        ])
    }

    #[test]
    fn leaves_that_are_not_there_give_no_features() {
        let features = check(fake()).unwrap();
        assert!(features.x2apic && features.tsc_deadline && features.intel);
        // Leaf 7 and 0x80000007 do not exist; unguarded, they would be leaf 1 with all its ones.
        assert!(!features.smep && !features.smap && !features.umip && !features.invariant_tsc);
        assert!(needs_page_table_isolation(features, u64::MAX));
    }

    #[test]
    fn each_needed_feature_is_missed_by_name() {
        for (index, bits) in [(1, &LEAF1_EDX[..]), (3, &EXT1_EDX)] {
            for (bit, name) in bits {
                let mut without = fake();
                without.0[index].1[3] &= !(1 << bit);
                let missing = check(without).unwrap_err();
                assert!(missing.0.contains(name), "{name}: {}", missing.0);
            }
        }
        let mut old = fake();
        old.0.truncate(2);
        assert_eq!(check(old).unwrap_err(), Missing("extended CPUID features"));
    }
}
