//! The performance counter as a source of samples: about every millisecond's worth of a CPU's cycles an interrupt.
//!
//! Three interfaces count the same quantity, and differ in the registers. [`Counter`] holds what differs, as a plan: which registers
//! there are, and what is written to them. What is done with a counter, and in which order, is said once, for all.
//! [`Claims`] is what CPUID says of a CPU's monitor, and [`prove`] finds out whether that is true: under some hypervisors it is not.
//!
//! # Where this is from
//! Intel SDM volume 3B, chapter "Performance Monitoring": "Architectural Performance Monitoring Version 2" (fixed counters, global control,
//! status and its acknowledgement), "... Version 3" and "AnyThread Counting and Software Evolution", "... Version 4" (freezing),
//! "... Version 5" (which fixed counters there are; AnyThread's deprecation), "Full-Width Writes to Performance Counter Registers",
//! "Generating an Interrupt on Overflow"; volume 3A, "Local Vector Table" (the entry for counters, which masks itself); volume 2,
//! CPUID leaf 0AH. AMD64 Architecture Programmer's Manual volume 2, "Performance Monitoring Counters"; volume 3,
//! appendix E, CPUID Fn8000_0001 and Fn8000_0022. AMD Processor Programming Reference for family 19h model 11h, MSRC000_0300 to
//! MSRC000_0302 and MSRC001_0200.
//!
//! # Not used
//! AMD's old counters at MSRs 0xC0010000 to 0xC0010007: there are four of them, they overlap the core counters on some processors, and
//! some hypervisors fault them. Intel's first version, which has no global control: no processor with 64-bit mode that is left has it.

mod bus;
mod claims;
mod counter;
mod msr;
mod proof;

pub use bus::{GeneralProtection, MonitorBus, NoMonitor};
pub use claims::Claims;
pub use counter::Counter;
pub use msr::Msr;
pub use proof::{Bench, Finding, prove};

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;
