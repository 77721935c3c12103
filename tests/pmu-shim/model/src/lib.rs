//! Performance counters that no hardware stands behind, for tests: three interfaces, and the ways in which one can lie.
//!
//! The shim (`tests/pmu-shim`) gives them to a guest of an emulator that has none; host tests use them as they are. Nothing
//! here knows how a register is reached or how time passes: both are told.
//!
//! Sources: Intel SDM volume 3B, chapter "Performance Monitoring", volume 3A, "Local Vector Table", and volume 2, CPUID; AMD64
//! manual volume 2, "Performance Monitoring Counters", and volume 3, appendix E (CPUID). AMD's processor programming reference for
//! family 19h model 11h has the global registers.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod amd;
pub mod cpuid;
mod intel;
pub mod msr;
pub mod nmi;
pub mod pmu;
pub mod record;
pub mod setup;

/// Most CPUs of a machine with the shim, of which each has a timer of the HPET.
pub const CPUS_MAX: usize = 8;

/// Bits of every counter here.
pub const WIDTH: u32 = 48;

/// Adds to a counter; whether it went past its end.
const fn count(value: &mut u64, cycles: u64) -> bool {
    let sum = *value + cycles;
    *value = sum & ((1 << WIDTH) - 1);
    sum >> WIDTH != 0
}

/// Cycles until a counter goes past its end.
const fn to_end(value: u64) -> u64 {
    (1 << WIDTH) - value
}
