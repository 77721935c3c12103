//! The caches that a CPU reaches: by the leaf that has one in each part, or of older AMD processors, by the two that have all.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use raw_cpuid::{CacheType, CpuId};

use super::leaves::Leaves;

/// In words, from the inside: `L1d 32 KiB, L1i 32 KiB, L2 512 KiB`. None if CPUID names none.
pub fn of(cpu: &CpuId<&Leaves>) -> Option<String> {
    let parts = cpu.get_cache_parameters().into_iter().flatten();
    let mut caches: Vec<String> = parts
        .map(|cache| {
            let kind = match cache.cache_type() {
                CacheType::Data => "d",
                CacheType::Instruction => "i",
                _ => "",
            };
            let bytes = [
                cache.associativity(),
                cache.physical_line_partitions(),
                cache.coherency_line_size(),
                cache.sets(),
            ];
            let bytes = bytes.into_iter().fold(1, usize::saturating_mul);
            one(cache.level(), kind, bytes / 1024)
        })
        .collect();
    if caches.is_empty() {
        caches = older(cpu);
    }
    (!caches.is_empty()).then(|| caches.join(", "))
}

/// AMD's leaves 0x80000005 and 0x80000006 (APM volume 3, appendix E): sizes in KiB, that of the third level in halves of MiB.
fn older(cpu: &CpuId<&Leaves>) -> Vec<String> {
    // Of others than AMD there is no first one, and in the second most is reserved.
    let (Some(first), Some(others)) = (
        cpu.get_l1_cache_and_tlb_info(),
        cpu.get_l2_l3_cache_and_tlb_info(),
    ) else {
        return Vec::new();
    };
    let all = [
        (1, "d", usize::from(first.dcache_size())),
        (1, "i", usize::from(first.icache_size())),
        (2, "", usize::from(others.l2cache_size())),
        (3, "", usize::from(others.l3cache_size()) * 512),
    ];
    let there = all.into_iter().filter(|&(_, _, kib)| kib > 0);
    there
        .map(|(level, kind, kib)| one(level, kind, kib))
        .collect()
}

fn one(level: u8, kind: &str, kib: usize) -> String {
    match kib {
        1024.. if kib.is_multiple_of(1024) => format!("L{level}{kind} {} MiB", kib / 1024),
        _ => format!("L{level}{kind} {kib} KiB"),
    }
}
