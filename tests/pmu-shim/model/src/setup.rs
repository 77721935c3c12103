//! Which counters a machine has, and whether they tell the truth: `INTERFACE`, `INTERFACE:MODE`, or, where CPUs differ,
//! `INTERFACE:MODE:N`: those of the first N CPUs are good.

use core::fmt::{self, Display, Formatter};

/// What stands before it on the kernel's command line.
pub const WORD: &str = "pmu-shim=";

/// How the counters are programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Intel's architectural performance monitoring, version 2, with three fixed counters and no others.
    Intel,
    /// AMD's core extension: six counters, no global registers.
    Amd,
    /// The same with the global registers of performance monitoring version 2.
    AmdV2,
}

/// What is wrong with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Good,
    /// Nothing, and the guest's time does not pass while the shim works: its instructions can be counted.
    Hidden,
    /// Registers swallow what is written and read as zero.
    Swallowing,
    /// Registers hold what is written, and nothing counts.
    Latched,
    /// They count 64 times too fast.
    Absurd,
    /// They count and overflow, and never interrupt.
    Silent,
    /// They count and interrupt, and never tell that they overflowed.
    Blank,
    /// Every access faults.
    Faulting,
    /// Of every hundred interrupts the last is lost.
    Dropping,
    /// Of every hundred interrupts the last comes a second time, [`Mode::LATE`] cycles after the first.
    Late,
    /// The first interrupt comes [`Mode::TARDY`] cycles behind its overflow, and [`Mode::LATE`] cycles later once more.
    Tardy,
}

impl Mode {
    /// How much too fast [`Mode::Absurd`] counts.
    pub const ABSURD: u64 = 64;
    /// Interrupts of which one goes wrong.
    pub const ONE_IN: u64 = 100;
    /// Cycles by which the second of two interrupts is late.
    pub const LATE: u64 = 50_000;
    /// Cycles by which the first interrupt of [`Mode::Tardy`] is late: twice as many as a proof at a cycle each nanosecond waits.
    pub const TARDY: u64 = 2_000_000;
}

const INTERFACES: [(&str, Interface); 3] = [
    ("intel", Interface::Intel),
    ("amd", Interface::Amd),
    ("amd2", Interface::AmdV2),
];

const MODES: [(&str, Mode); 11] = [
    ("good", Mode::Good),
    ("hidden", Mode::Hidden),
    ("swallowing", Mode::Swallowing),
    ("latched", Mode::Latched),
    ("absurd", Mode::Absurd),
    ("silent", Mode::Silent),
    ("blank", Mode::Blank),
    ("faulting", Mode::Faulting),
    ("dropping", Mode::Dropping),
    ("late", Mode::Late),
    ("tardy", Mode::Tardy),
];

/// A machine's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// How they are programmed.
    pub interface: Interface,
    /// What is wrong with them.
    pub mode: Mode,
    /// CPUs before the first with which anything is.
    pub good: u8,
}

impl Setup {
    /// Reads it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (interface, rest) = text.split_once(':').unwrap_or((text, "good"));
        let (mode, good) = rest.split_once(':').unwrap_or((rest, "0"));
        Some(Self {
            interface: named(&INTERFACES, interface)?,
            mode: named(&MODES, mode)?,
            good: good.parse().ok()?,
        })
    }

    /// What is wrong with the counters of this CPU.
    #[must_use]
    pub const fn mode_of(self, cpu: u8) -> Mode {
        if cpu < self.good {
            Mode::Good
        } else {
            self.mode
        }
    }

    /// Whether the shim hides what it takes.
    #[must_use]
    pub fn is_hidden(self) -> bool {
        self.mode == Mode::Hidden
    }

    /// Every setup in which CPUs do not differ.
    pub fn all() -> impl Iterator<Item = Self> {
        INTERFACES.into_iter().flat_map(|(_, interface)| {
            let of = move |(_, mode)| Self {
                interface,
                mode,
                good: 0,
            };
            MODES.into_iter().map(of)
        })
    }
}

fn named<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    let found = names.iter().find(|(known, _)| *known == name);
    found.map(|&(_, value)| value)
}

fn name<T: Copy + PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    let found = names.iter().find(|(_, known)| *known == value);
    found.map_or("", |(name, _)| name)
}

impl Display for Setup {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let interface = name(&INTERFACES, self.interface);
        write!(f, "{interface}:{}", name(&MODES, self.mode))?;
        match self.good {
            0 => Ok(()),
            good => write!(f, ":{good}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setup_has_a_name_that_leads_to_it() {
        assert_eq!(Setup::all().count(), 33);
        for setup in Setup::all() {
            assert_eq!(Setup::parse(&setup.to_string()), Some(setup));
        }
    }

    #[test]
    fn counters_are_good_unless_said_otherwise() {
        let good = Setup {
            interface: Interface::AmdV2,
            mode: Mode::Good,
            good: 0,
        };
        assert_eq!(Setup::parse("amd2"), Some(good));
        for bad in ["", "arm", "amd2:", "amd2:bad", "amd2:late:late", ":late"] {
            assert_eq!(Setup::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_first_cpus_may_be_good() {
        let setup = Setup::parse("intel:latched:2").unwrap();
        assert_eq!(setup.to_string(), "intel:latched:2");
        let modes = [0, 1, 2, 255].map(|cpu| setup.mode_of(cpu));
        assert_eq!(modes[..2], [Mode::Good; 2]);
        assert_eq!(modes[2..], [Mode::Latched; 2]);
    }
}
