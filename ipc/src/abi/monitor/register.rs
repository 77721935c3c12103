//! The registers of performance monitors: numbers and names, by which the kernel's driver accesses them and `lscpu -v` shows them.
//!
//! The names are those of the manuals: Intel SDM volume 4, "Architectural MSRs"; AMD64 Architecture Programmer's Manual volume 2,
//! "Performance Monitoring Counters"; and for the second version's, AMD Processor Programming Reference for family 19h model 11h,
//! MSRC000_0300 to MSRC000_0302.

/// One register, or several of the same kind: those of counter 0, counter 1 and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    name: &'static str,
    first: u32,
    /// From one to the next.
    step: u32,
    count: u8,
}

const fn one(name: &'static str, number: u32) -> Registers {
    several(name, number, 1, 1)
}

const fn several(name: &'static str, first: u32, step: u32, count: u8) -> Registers {
    Registers {
        name,
        first,
        step,
        count,
    }
}

/// Declares the kinds, and the table of all of them.
macro_rules! registers {
    ($($(#[$meta:meta])* $kind:ident = $registers:expr;)*) => {
        impl Registers {
            $($(#[$meta])* pub const $kind: Self = $registers;)*
            /// Every kind.
            const ALL: [Self; [$(stringify!($kind)),*].len()] = [$(Self::$kind),*];
        }
    };
}

registers! {
    /// Intel's programmable counters. A write sets 32 bits, and the others to the highest of these.
    INTEL_COUNTERS = several("IA32_PMC", 0xc1, 1, 8);
    /// What each of Intel's programmable counters counts.
    INTEL_SELECTS = several("IA32_PERFEVTSEL", 0x186, 1, 8);
    /// Only one of its bits is the monitor's. AMD's manual calls it DebugCtl.
    DEBUG_CONTROL = one("IA32_DEBUGCTL", 0x1d9);
    /// Intel's fixed counters: as many as have a field in [`Self::FIXED_CONTROL`].
    FIXED_COUNTERS = several("IA32_FIXED_CTR", 0x309, 1, 16);
    /// What Intel's monitor can do beyond CPUID.
    CAPABILITIES = one("IA32_PERF_CAPABILITIES", 0x345);
    /// Where each of Intel's fixed counters counts.
    FIXED_CONTROL = one("IA32_FIXED_CTR_CTRL", 0x38d);
    /// Which of Intel's counters have overflowed.
    INTEL_STATUS = one("IA32_PERF_GLOBAL_STATUS", 0x38e);
    /// Which of Intel's counters may count.
    INTEL_CONTROL = one("IA32_PERF_GLOBAL_CTRL", 0x38f);
    /// Clears bits of the status; from version 4 on it is IA32_PERF_GLOBAL_STATUS_RESET.
    INTEL_ACKNOWLEDGE = one("IA32_PERF_GLOBAL_OVF_CTRL", 0x390);
    /// Intel's programmable counters once more. A write sets all bits.
    INTEL_WIDE_COUNTERS = several("IA32_A_PMC", 0x4c1, 1, 8);
    /// Which of AMD's counters have overflowed.
    AMD_STATUS = one("PerfCntrGlobalStatus", 0xc000_0300);
    /// Which of AMD's counters may count.
    AMD_CONTROL = one("PerfCntrGlobalCtl", 0xc000_0301);
    /// Clears bits of the status.
    AMD_ACKNOWLEDGE = one("PerfCntrGlobalStatusClr", 0xc000_0302);
    /// What each of AMD's core counters counts: as many as CPUID can claim, in four bits.
    AMD_SELECTS = several("PERF_CTL", 0xc001_0200, 2, 15);
    /// AMD's core counters.
    AMD_COUNTERS = several("PERF_CTR", 0xc001_0201, 2, 15);
}

impl Registers {
    /// How many there are.
    #[must_use]
    pub const fn count(self) -> u8 {
        self.count
    }

    /// The number of one.
    ///
    /// # Panics
    /// There is none of this index.
    #[must_use]
    pub const fn number(self, index: u8) -> u32 {
        assert!(index < self.count);
        self.first + self.step * index as u32
    }

    /// The kind that a number is of, and its index among those.
    fn find(number: u64) -> Option<(Self, u8)> {
        let indices = |kind: Self| (0..kind.count).map(move |index| (kind, index));
        let mut all = Self::ALL.into_iter().flat_map(indices);
        all.find(|(kind, index)| u64::from(kind.number(*index)) == number)
    }
}

/// A register by its number, as it is shown: `0x30a IA32_FIXED_CTR1`; without a name if it is none of these.
#[derive(Clone, Copy, Debug)]
pub struct Named(pub u64);

impl core::fmt::Display for Named {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#x}", self.0)?;
        match Registers::find(self.0) {
            Some((kind, _)) if kind.count == 1 => write!(f, " {}", kind.name),
            Some((kind, index)) => write!(f, " {}{index}", kind.name),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers and names as they stand in the manuals, the first and the last of each kind.
    #[test]
    fn each_is_named_as_in_the_manuals() {
        for named in [
            "0xc1 IA32_PMC0",
            "0xc8 IA32_PMC7",
            "0x186 IA32_PERFEVTSEL0",
            "0x18d IA32_PERFEVTSEL7",
            "0x1d9 IA32_DEBUGCTL",
            "0x309 IA32_FIXED_CTR0",
            "0x318 IA32_FIXED_CTR15",
            "0x345 IA32_PERF_CAPABILITIES",
            "0x38d IA32_FIXED_CTR_CTRL",
            "0x38e IA32_PERF_GLOBAL_STATUS",
            "0x38f IA32_PERF_GLOBAL_CTRL",
            "0x390 IA32_PERF_GLOBAL_OVF_CTRL",
            "0x4c1 IA32_A_PMC0",
            "0x4c8 IA32_A_PMC7",
            "0xc0000300 PerfCntrGlobalStatus",
            "0xc0000301 PerfCntrGlobalCtl",
            "0xc0000302 PerfCntrGlobalStatusClr",
            "0xc0010200 PERF_CTL0",
            "0xc0010201 PERF_CTR0",
            "0xc001021c PERF_CTL14",
            "0xc001021d PERF_CTR14",
        ] {
            let (number, _) = named.split_once(' ').unwrap();
            let number = u64::from_str_radix(&number[2..], 16).unwrap();
            assert_eq!(Named(number).to_string(), named);
        }
        for unnamed in [0, 0xc0, 0xc9, 0x319, 0xc001_021e, 0x1_0000_038d] {
            assert_eq!(Named(unnamed).to_string(), format!("{unnamed:#x}"));
        }
    }
}
