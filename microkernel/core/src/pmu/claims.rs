//! What CPUID claims of a CPU's performance monitor. A leaf beyond the highest one returns another leaf's data, which on one
//! processor looks like AMD's second version; [`Guarded`] answers zeros.

use super::bus::MonitorBus;
use super::counter::Counter;
use super::msr::{AMD_COUNTERS_MAX, INTEL_COUNTERS_MAX, Msr};
use crate::boot::features::Guarded;
use ipc::abi::monitor::Interface;
use raw_cpuid::CpuIdReader;

/// Bits of a core counter, and how many there are where nothing says so (APM volume 2, "Performance Monitoring Counters").
const AMD_BITS: u8 = 48;
const AMD_COUNTERS: u8 = 6;
/// Bits of a counter that can be used: more than the 32 of the longest interval, since the highest must be set where it begins
/// ([`Counter::period_max`]), and fewer than its register's.
const BITS: core::ops::RangeInclusive<u8> = 33..=63;
/// The fixed counter of unhalted core cycles.
const CYCLES: u8 = 1;

/// The claims about one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The interface, if it is one that can be used for cycles.
    pub interface: Interface,
    /// Its version; 0 for none.
    pub version: u8,
    /// Programmable counters.
    pub counters: u8,
    /// Bits of each.
    pub counter_bits: u8,
    /// Fixed counters, a bit each.
    pub fixed: u32,
    /// Bits of each.
    pub fixed_bits: u8,
    /// IA32_PERF_CAPABILITIES exists.
    pub has_capabilities: bool,
    /// An interrupt may freeze the counters, as a bit of IA32_DEBUGCTL says.
    pub may_freeze: bool,
}

impl Claims {
    /// Nothing.
    pub const NONE: Self = Self {
        interface: Interface::None,
        version: 0,
        counters: 0,
        counter_bits: 0,
        fixed: 0,
        fixed_bits: 0,
        has_capabilities: false,
        may_freeze: false,
    };

    /// Those of the CPU whose answers these are.
    pub fn read<R: CpuIdReader>(reader: R) -> Self {
        let reader = Guarded(reader);
        let intel = Self::intel(&reader);
        if intel.version > 0 {
            return intel;
        }
        Self::amd(&reader)
    }

    /// CPUID leaf 0AH (SDM volume 2, CPUID; volume 3B, "Architectural Performance Monitoring Version 1" and the sections behind
    /// it).
    fn intel(reader: &impl CpuIdReader) -> Self {
        const PDCM: u32 = 1 << 15;
        let leaf = reader.cpuid2(0xa, 0);
        let version = leaf.eax as u8;
        if version < 2 {
            return Self {
                version,
                ..Self::NONE
            };
        }
        let row = (1 << (leaf.edx & 0x1f)) - 1;
        // From version 5 on there may be holes in the row.
        let fixed = if version < 5 { row } else { row | leaf.ecx };
        let fixed_bits = (leaf.edx >> 5) as u8;
        let has_capabilities = reader.cpuid2(1, 0).ecx & PDCM != 0;
        let usable = fixed >> CYCLES & 1 == 1 && BITS.contains(&fixed_bits);
        Self {
            interface: if usable {
                Interface::Intel
            } else {
                Interface::None
            },
            version,
            counters: ((leaf.eax >> 8) as u8).min(INTEL_COUNTERS_MAX),
            counter_bits: (leaf.eax >> 16) as u8,
            // As many as have a field in the register that controls them.
            fixed: fixed & 0xffff,
            fixed_bits,
            has_capabilities,
            may_freeze: has_capabilities,
        }
    }

    /// PerfCtrExtCore, and PerfMonV2 (APM volume 3, CPUID Fn8000_0001_ECX bit 23 and Fn8000_0022).
    fn amd(reader: &impl CpuIdReader) -> Self {
        const CORE_EXTENSION: u32 = 1 << 23;
        const VERSION_2: u32 = 1 << 0;
        const FREEZE: u32 = 1 << 2;
        if reader.cpuid2(0x8000_0001, 0).ecx & CORE_EXTENSION == 0 {
            return Self::NONE;
        }
        let leaf = reader.cpuid2(0x8000_0022, 0);
        let counters = (leaf.ebx & 0xf) as u8;
        let v2 = leaf.eax & VERSION_2 != 0 && counters > 0;
        Self {
            interface: if v2 {
                Interface::AmdCoreV2
            } else {
                Interface::AmdCore
            },
            version: if v2 { 2 } else { 1 },
            counters: if v2 { counters } else { AMD_COUNTERS },
            counter_bits: AMD_BITS,
            may_freeze: v2 && leaf.eax & FREEZE != 0,
            ..Self::NONE
        }
    }

    /// The counter of unhalted core cycles, in user mode and in the kernel.
    #[must_use]
    pub const fn cycles(&self) -> Option<Counter> {
        /// Event 0x76, "Cycles not in Halt" (PPR, PMCx076).
        const NOT_HALTED: u16 = 0x76;
        match self.interface {
            Interface::None => None,
            Interface::Intel => Some(Counter::intel_fixed(self, CYCLES)),
            Interface::AmdCore | Interface::AmdCoreV2 => {
                Some(Counter::amd_core(self, 0, NOT_HALTED, 0))
            }
        }
    }

    /// Whether all bits of Intel's programmable counters can be written: FW_WRITE of IA32_PERF_CAPABILITIES (SDM, "Full-Width
    /// Writes to Performance Counter Registers").
    ///
    /// # Errors
    /// The register faulted.
    pub fn full_width<B: MonitorBus>(&self, bus: &B) -> Result<bool, B::Fault> {
        const FULL_WIDTH_WRITES: u64 = 1 << 13;
        if !self.has_capabilities {
            return Ok(false);
        }
        Ok(bus.read(Msr::CAPABILITIES)? & FULL_WIDTH_WRITES != 0)
    }

    /// The bit of status and acknowledgement that says that the counters are frozen, if there is one: CTR_FRZ from Intel's version
    /// 4 on, PMCF of AMD.
    pub(super) const fn frozen(&self) -> u64 {
        const FROZEN: u64 = 1 << 59;
        match self.interface {
            Interface::Intel if self.version >= 4 => FROZEN,
            Interface::AmdCoreV2 if self.may_freeze => FROZEN,
            _ => 0,
        }
    }

    /// Bits of the claimed counters in the registers of global control, status and acknowledgement.
    pub(super) const fn all_counters(&self) -> u64 {
        ((1 << self.counters) - 1) | ((self.fixed as u64) << 32)
    }
}

const _: () = assert!(AMD_COUNTERS <= AMD_COUNTERS_MAX && INTEL_COUNTERS_MAX < 32);
