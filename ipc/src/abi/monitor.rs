//! What a CPU's performance monitor claims to be, and what the proof at boot found out about it.

pub mod register;

use super::numbered::numbered;
use super::profile::Source;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

numbered! {
    /// Which interface CPUID claims, of those that the driver knows.
    pub enum Interface: u64, name {
        /// None of them.
        None = 0 => "no counters that the profiler can use",
        /// Architectural performance monitoring 2 or later, with fixed counter 1.
        Intel = 1 => "Intel fixed counters",
        /// Core counters of the AMD extension.
        AmdCore = 2 => "AMD core counters",
        /// The same with global control and status.
        AmdCoreV2 = 3 => "AMD core counters v2",
    }
}

impl Interface {
    /// The source of samples that it is.
    #[must_use]
    pub const fn source(self) -> Option<Source> {
        match self {
            Self::None => None,
            Self::Intel => Some(Source::PmuIntel),
            Self::AmdCore => Some(Source::PmuAmd),
            Self::AmdCoreV2 => Some(Source::PmuAmdV2),
        }
    }
}

numbered! {
    /// What the proof came to. The words go on behind those of the [`Interface`].
    pub enum Verdict: u64, text {
        /// There was nothing to prove, or the CPU was not asked to.
        Untried = 0 => "they were not tried",
        /// The cycle counter counts, at a rate that can be, interrupts, and tells why.
        Works = 1 => "they count and interrupt",
        /// Access to a register faulted.
        Faults = 2 => "their registers fault",
        /// The cycle counter stands still.
        StandsStill = 3 => "they do not count",
        /// It counts at a rate that no processor has.
        Implausible = 4 => "their rate is absurd",
        /// It counts, and its interrupt does not come.
        Silent = 5 => "they never interrupt",
        /// It interrupts, and does not tell that it overflowed, or tells so for ever.
        Misreports = 6 => "they misreport overflows",
    }
}

/// Registers that a [`MonitorInfo`] has room for.
pub const MONITOR_REGISTERS: usize = 8;

/// What `profiler_monitor` writes to the caller's IPC buffer, of one CPU. It does not change after the boot.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct MonitorInfo {
    /// [`Interface`].
    pub interface: u64,
    /// Version that CPUID claims; 0 for none. It may claim one that the driver cannot use.
    pub version: u64,
    /// Programmable counters claimed, and the bits that each has.
    pub counters: u64,
    /// See `counters`.
    pub counter_bits: u64,
    /// Fixed counters claimed, a bit each, and the bits that each has.
    pub fixed_counters: u64,
    /// See `fixed_counters`.
    pub fixed_bits: u64,
    /// [`Verdict`].
    pub verdict: u64,
    /// Cycles in a second, as the proof measured them; 0 if they were not counted.
    pub hz: u64,
    /// Registers in use of `registers`.
    pub register_count: u64,
    /// Numbers and values of model-specific [registers](register), read in the proof: while the counter counted, or when it was found
    /// not to.
    pub registers: [[u64; 2]; MONITOR_REGISTERS],
}

/// What is claimed, and what became of that, in words.
impl core::fmt::Display for MonitorInfo {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        words(f, self.interface, self.verdict)
    }
}

/// The same of an [`Interface`] and a [`Verdict`] by their numbers.
pub(crate) fn words(
    f: &mut core::fmt::Formatter<'_>,
    interface: u64,
    verdict: u64,
) -> core::fmt::Result {
    let interface = Interface::from_raw(interface).unwrap_or(Interface::None);
    write!(f, "claims {}", interface.name())?;
    match (interface, Verdict::from_raw(verdict)) {
        (Interface::None, _) | (_, None) => Ok(()),
        (_, Some(verdict)) => write!(f, "; {}", verdict.text()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn the_words_say_what_is_claimed_and_whether_it_is_true() {
        let said = |interface, verdict| {
            let info = MonitorInfo {
                interface,
                verdict,
                ..MonitorInfo::new_zeroed()
            };
            info.to_string()
        };
        assert_eq!(said(2, 3), "claims AMD core counters; they do not count");
        assert_eq!(said(0, 0), "claims no counters that the profiler can use");
        assert_eq!(said(99, 99), said(0, 0));
    }
}
