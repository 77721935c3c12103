//! How CPUs share cores and packages, from the ids of their local APICs: its lowest bits number the threads of a core, those above them the
//! cores of a package, and the others the package.
//!
//! The widths are in the leaves of the topology (Intel SDM volume 3A, "Programming Considerations for Hardware Multi-Threading Capable
//! Processors"); of older processors, in leaf 1 and leaf 4, or in 0x80000008 and 0x8000001e (AMD64 APM volume 3, appendix E).

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use raw_cpuid::CpuIdReader;

use super::leaves::Leaves;
use crate::text::counted;

/// The APIC id of a CPU, and how it is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    id: u32,
    /// Bits that number the threads of a core.
    thread_bits: u32,
    /// Bits that number the threads of a package.
    package_bits: u32,
}

impl Place {
    fn of(leaves: &Leaves) -> Self {
        Self::by_levels(leaves, 0x1f)
            .or_else(|| Self::by_levels(leaves, 0xb))
            .unwrap_or_else(|| Self::by_counts(leaves))
    }

    /// By one of the topology's leaves. Their parts are the levels, from the inside; each says how many bits lie below the next one.
    fn by_levels(leaves: &Leaves, leaf: u32) -> Option<Self> {
        const THREADS: u32 = 1;
        let levels = || leaves.iter().filter(|level| level.leaf == leaf);
        let bits = |words: &[u32; 4]| words[0] & 0x1f;
        let last = levels().last()?;
        let threads = levels().find(|level| level.words[2] >> 8 & 0xff == THREADS);
        Some(Self {
            id: last.words[3],
            thread_bits: threads.map_or(0, |level| bits(&level.words)),
            package_bits: bits(&last.words),
        })
    }

    /// By how many threads and cores a package has room for.
    fn by_counts(leaves: &Leaves) -> Self {
        const HTT: u32 = 1 << 28;
        const AMD_LEGACY: u32 = 1 << 1;
        let basic = leaves.cpuid1(1);
        let id = basic.ebx >> 24;
        let bits = |count: u32| count.max(1).next_power_of_two().trailing_zeros();
        let single = basic.edx & HTT == 0;
        let cores = leaves.cpuid2(4, 0).eax;
        let is_legacy = leaves.cpuid1(0x8000_0001).ecx & AMD_LEGACY != 0;
        // A hypervisor may fill AMD's field on others, too, which say by leaf 4 what it does not.
        let is_amd = cores == 0 || is_legacy;
        let (thread_bits, package_bits) = match leaves.cpuid1(0x8000_0008).ecx {
            _ if single => (0, 0),
            // Of AMD. The field of the bits may be empty; then the number of threads is one more than the other one.
            sizes if sizes & 0xff > 0 && is_amd => {
                let width = sizes >> 12 & 0xf;
                let package = if width > 0 {
                    width
                } else {
                    bits((sizes & 0xff) + 1)
                };
                let threads = (leaves.cpuid1(0x8000_001e).ebx >> 8 & 0xff) + 1;
                (bits(threads), package)
            }
            _ => {
                let package = bits(basic.ebx >> 16 & 0xff);
                // Without leaf 4, and with AMD's mark for it, the threads are cores.
                let threads = match is_legacy {
                    true => 0,
                    false => package.saturating_sub(bits((cores >> 26) + 1)),
                };
                (threads, package)
            }
        };
        Self {
            id,
            thread_bits,
            package_bits,
        }
    }

    fn package(self) -> u32 {
        self.id.checked_shr(self.package_bits).unwrap_or(0)
    }

    fn core(self) -> u32 {
        self.id.checked_shr(self.thread_bits).unwrap_or(0)
    }
}

/// What CPUs there are, in words: only those that run are counted.
pub fn of<'a>(cpus: impl Iterator<Item = &'a Leaves>) -> String {
    let (mut threads, mut cores, mut packages) = (0, BTreeSet::new(), BTreeSet::new());
    for place in cpus.map(Place::of) {
        threads += 1;
        cores.insert(place.core());
        packages.insert(place.package());
    }
    format!(
        "{}, {}, {}",
        counted(threads, "thread"),
        counted(cores.len() as u64, "core"),
        counted(packages.len() as u64, "package")
    )
}
