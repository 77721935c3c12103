//! CPUID's answers on one CPU, kept to be looked at anywhere.
//!
//! A leaf beyond the highest one is answered with another leaf's data, which then looks like features (Intel SDM, volume 2, CPUID). Only leaves
//! up to the highest of their group are read, and one that was not read is zeros.

use alloc::vec::Vec;

use raw_cpuid::{CpuIdReader, CpuIdResult};

/// The groups: basic, of a hypervisor, extended.
const BASIC: u32 = 0;
const HYPERVISOR: u32 = 0x4000_0000;
const EXTENDED: u32 = 0x8000_0000;
/// Leaves of a group, and parts of a leaf, that are read at most.
const LEAVES_MAX: u32 = 0x40;
const PARTS_MAX: u32 = 8;

/// Leaves that come in parts, up to the first that is empty: caches (of Intel and of AMD) and levels of the topology (two versions).
const IN_PARTS: [u32; 4] = [0x4, 0xb, 0x1f, 0x8000_001d];

/// One answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// What EAX asked for.
    pub leaf: u32,
    /// What ECX asked for.
    pub part: u32,
    /// EAX, EBX, ECX and EDX.
    pub words: [u32; 4],
}

/// The answers of one CPU that are not zeros, in the order in which they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaves(Vec<Leaf>);

impl Leaves {
    /// Reads them on the CPU that runs this.
    pub fn read(cpu: &impl CpuIdReader) -> Self {
        let mut leaves = Self::default();
        leaves.read_group(cpu, BASIC);
        // Feature bit "hypervisor present": only with it are the leaves there.
        if (&leaves).cpuid1(1).ecx >> 31 == 1 {
            leaves.read_group(cpu, HYPERVISOR);
        }
        leaves.read_group(cpu, EXTENDED);
        leaves
    }

    fn read_group(&mut self, cpu: &impl CpuIdReader, group: u32) {
        let highest = cpu.cpuid1(group).eax;
        if highest & 0xf000_0000 != group {
            return;
        }
        for leaf in group..=highest.min(group + LEAVES_MAX) {
            let parts = if IN_PARTS.contains(&leaf) {
                PARTS_MAX
            } else {
                1
            };
            for part in 0..parts {
                let CpuIdResult { eax, ebx, ecx, edx } = cpu.cpuid2(leaf, part);
                let words = [eax, ebx, ecx, edx];
                // The type of the cache, and the threads of the level: none behind the last.
                let is_empty = match leaf {
                    0x4 | 0x8000_001d => eax & 0x1f == 0,
                    0xb | 0x1f => ebx & 0xffff == 0,
                    _ => words == [0; 4],
                };
                if is_empty {
                    break;
                }
                self.0.push(Leaf { leaf, part, words });
            }
        }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Leaf> {
        self.0.iter()
    }
}

impl FromIterator<Leaf> for Leaves {
    fn from_iter<I: IntoIterator<Item = Leaf>>(leaves: I) -> Self {
        Self(leaves.into_iter().collect())
    }
}

impl CpuIdReader for &Leaves {
    fn cpuid2(&self, leaf: u32, part: u32) -> CpuIdResult {
        let found = self.0.iter().find(|a| (a.leaf, a.part) == (leaf, part));
        let [eax, ebx, ecx, edx] = found.map_or([0; 4], |found| found.words);
        CpuIdResult { eax, ebx, ecx, edx }
    }
}
