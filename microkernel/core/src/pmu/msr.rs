//! The monitor's model-specific registers. There is no other way to make an [`Msr`], so whoever has one can do no more with it than count.

use ipc::abi::monitor::register::Registers;

/// A register of the performance monitor. No write to one reads or writes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Msr(u32);

/// Most programmable counters of an Intel processor, and core counters of an AMD one, that are used: those that have registers.
pub(super) const INTEL_COUNTERS_MAX: u8 = Registers::INTEL_SELECTS.count();
pub(super) const AMD_COUNTERS_MAX: u8 = Registers::AMD_SELECTS.count();

impl Msr {
    /// See [`Registers::CAPABILITIES`].
    pub const CAPABILITIES: Self = Self::of(Registers::CAPABILITIES, 0);
    /// See [`Registers::DEBUG_CONTROL`].
    pub const DEBUG_CONTROL: Self = Self::of(Registers::DEBUG_CONTROL, 0);
    /// See [`Registers::FIXED_CONTROL`].
    pub const FIXED_CONTROL: Self = Self::of(Registers::FIXED_CONTROL, 0);
    /// See [`Registers::INTEL_STATUS`].
    pub const INTEL_STATUS: Self = Self::of(Registers::INTEL_STATUS, 0);
    /// See [`Registers::INTEL_CONTROL`].
    pub const INTEL_CONTROL: Self = Self::of(Registers::INTEL_CONTROL, 0);
    /// See [`Registers::INTEL_ACKNOWLEDGE`].
    pub const INTEL_ACKNOWLEDGE: Self = Self::of(Registers::INTEL_ACKNOWLEDGE, 0);
    /// See [`Registers::AMD_STATUS`].
    pub const AMD_STATUS: Self = Self::of(Registers::AMD_STATUS, 0);
    /// See [`Registers::AMD_CONTROL`].
    pub const AMD_CONTROL: Self = Self::of(Registers::AMD_CONTROL, 0);
    /// See [`Registers::AMD_ACKNOWLEDGE`].
    pub const AMD_ACKNOWLEDGE: Self = Self::of(Registers::AMD_ACKNOWLEDGE, 0);

    const fn of(registers: Registers, index: u8) -> Self {
        Self(registers.number(index))
    }
    /// See [`Registers::FIXED_COUNTERS`].
    pub(super) const fn fixed_counter(index: u8) -> Self {
        Self::of(Registers::FIXED_COUNTERS, index)
    }
    /// See [`Registers::INTEL_SELECTS`].
    pub(super) const fn intel_select(index: u8) -> Self {
        Self::of(Registers::INTEL_SELECTS, index)
    }
    /// See [`Registers::INTEL_COUNTERS`].
    pub(super) const fn intel_counter(index: u8) -> Self {
        Self::of(Registers::INTEL_COUNTERS, index)
    }
    /// See [`Registers::INTEL_WIDE_COUNTERS`].
    pub(super) const fn intel_wide_counter(index: u8) -> Self {
        Self::of(Registers::INTEL_WIDE_COUNTERS, index)
    }
    /// See [`Registers::AMD_SELECTS`].
    pub(super) const fn amd_select(index: u8) -> Self {
        Self::of(Registers::AMD_SELECTS, index)
    }
    /// See [`Registers::AMD_COUNTERS`].
    pub(super) const fn amd_counter(index: u8) -> Self {
        Self::of(Registers::AMD_COUNTERS, index)
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
