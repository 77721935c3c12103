//! The monitor's model-specific registers. There is no other way to make an [`Msr`], so whoever has one can do no more with it than count.

/// A register of the performance monitor. No write to one reads or writes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Msr(u32);

/// Programmable counters that have registers of their own.
pub(super) const INTEL_COUNTERS_MAX: u8 = 8;
/// Fixed counters that have a field in [`Msr::FIXED_CONTROL`].
pub(super) const FIXED_COUNTERS_MAX: u8 = 16;
/// Core counters that are not another unit's: the next registers are the L3 cache's.
pub(super) const AMD_COUNTERS_MAX: u8 = 16;

impl Msr {
    /// IA32_PERF_CAPABILITIES.
    pub const CAPABILITIES: Self = Self(0x345);
    /// IA32_DEBUGCTL, of which only one bit is the monitor's.
    pub const DEBUG_CONTROL: Self = Self(0x1d9);
    /// IA32_FIXED_CTR_CTRL.
    pub const FIXED_CONTROL: Self = Self(0x38d);
    /// IA32_PERF_GLOBAL_STATUS.
    pub const INTEL_STATUS: Self = Self(0x38e);
    /// IA32_PERF_GLOBAL_CTRL.
    pub const INTEL_CONTROL: Self = Self(0x38f);
    /// IA32_PERF_GLOBAL_OVF_CTRL; from version 4 on IA32_PERF_GLOBAL_STATUS_RESET.
    pub const INTEL_ACKNOWLEDGE: Self = Self(0x390);
    /// PerfCntrGlobalStatus.
    pub const AMD_STATUS: Self = Self(0xc000_0300);
    /// PerfCntrGlobalCtl.
    pub const AMD_CONTROL: Self = Self(0xc000_0301);
    /// PerfCntrGlobalStatusClr.
    pub const AMD_ACKNOWLEDGE: Self = Self(0xc000_0302);

    /// IA32_FIXED_CTR of an index below 16.
    pub(super) const fn fixed_counter(index: u8) -> Self {
        assert!(index < FIXED_COUNTERS_MAX);
        Self(0x309 + index as u32)
    }
    /// IA32_PERFEVTSEL of an index below 8.
    pub(super) const fn intel_select(index: u8) -> Self {
        assert!(index < INTEL_COUNTERS_MAX);
        Self(0x186 + index as u32)
    }
    /// IA32_PMC of an index below 8: a write sets 32 bits, and the others to the highest of these.
    pub(super) const fn intel_counter(index: u8) -> Self {
        assert!(index < INTEL_COUNTERS_MAX);
        Self(0xc1 + index as u32)
    }
    /// IA32_A_PMC of an index below 8: the same counter, and a write sets all its bits.
    pub(super) const fn intel_wide_counter(index: u8) -> Self {
        assert!(index < INTEL_COUNTERS_MAX);
        Self(0x4c1 + index as u32)
    }
    /// Core PERF_CTL of an index below 16.
    pub(super) const fn amd_select(index: u8) -> Self {
        assert!(index < AMD_COUNTERS_MAX);
        Self(0xc001_0200 + index as u32 * 2)
    }
    /// Core PERF_CTR of an index below 16.
    pub(super) const fn amd_counter(index: u8) -> Self {
        assert!(index < AMD_COUNTERS_MAX);
        Self(0xc001_0201 + index as u32 * 2)
    }

    /// One of AMD's counters from before the core extension, which nothing but a test asks for.
    #[cfg(test)]
    pub(super) const fn amd_old(index: u8) -> Self {
        assert!(index < 8);
        Self(0xc001_0000 + index as u32)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}
