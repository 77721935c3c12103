//! Where samples are missing: how many of a window came from each CPU.
//!
//! Each CPU is due as many as any other, whatever it does. On an emulator whose host is busy, those of a busy CPU are missed more
//! often than those of an idle one; then shares of all samples weigh what ran on one CPU against what ran on another by the
//! samples that came.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Numbers that a CPU can have in a record.
const CPUS_MAX: usize = 1 << u8::BITS;

/// Samples of the window that came from each CPU, by its number.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ByCpu(pub Vec<u64>);

impl ByCpu {
    /// Notes a sample of this CPU.
    pub fn note(&mut self, cpu: u8) {
        let cpu = usize::from(cpu);
        if self.0.len() <= cpu {
            self.0.resize(cpu + 1, 0);
        }
        self.0[cpu] += 1;
    }

    /// The same for all CPUs of the machine, of which some gave none.
    #[must_use]
    pub fn of_all(&self, cpus: u64) -> Self {
        let cpus = usize::try_from(cpus).unwrap_or(CPUS_MAX).min(CPUS_MAX);
        let mut all = self.0.clone();
        all.resize(all.len().max(cpus), 0);
        Self(all)
    }

    /// How many came in all.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0.iter().copied().fold(0, u64::saturating_add)
    }

    /// What is to be said if CPUs differ by a tenth more than chance makes.
    #[must_use]
    pub fn uneven(&self) -> Option<String> {
        let numbered = || (0..).zip(self.0.iter().copied());
        let (fewest, few) = numbered().min_by_key(|&(_, samples)| samples)?;
        let (most, many): (u64, u64) = numbered().max_by_key(|&(_, samples)| samples)?;
        // The time between two samples is anything from a half to three halves of a period, so the difference between two CPUs
        // with `n` samples each has a standard deviation of 0.41 times the root of `n`. This is five of them, which no two of 64
        // CPUs come to; and one for where the window begins.
        let chance = 2 * many.isqrt() + 1;
        if many - few <= many / 10 + chance {
            return None;
        }
        Some(format!(
            "uneven: cpu {fewest} has {few} samples, cpu {most} has {many}: shares on cpu {fewest} are too small"
        ))
    }

    /// How many came from each CPU, of so many that were due.
    #[must_use]
    pub fn each(&self, due: u128) -> String {
        let came: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        format!("of each cpu, {due} due: {}", came.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_differ_by_more_than_chance_are_told() {
        assert_eq!(ByCpu::default().uneven(), None);
        assert_eq!(ByCpu(vec![1000, 904]).uneven(), None);
        assert_eq!(ByCpu(vec![10, 2]).uneven(), None);
        assert_eq!(ByCpu(vec![100, 69]).uneven(), None);
        assert!(ByCpu(vec![100, 68]).uneven().is_some());
        assert_eq!(ByCpu(vec![5; 64]).uneven(), None);
        let told = ByCpu(vec![998, 990, 412, 997]).uneven().unwrap_or_default();
        let expected =
            "uneven: cpu 2 has 412 samples, cpu 0 has 998: shares on cpu 2 are too small";
        assert_eq!(told, expected);
        assert!(ByCpu(vec![0, u64::MAX]).uneven().is_some());
    }

    #[test]
    fn every_cpu_of_the_machine_is_told() {
        let mut came = ByCpu::default();
        for cpu in [2, 0, 2] {
            came.note(cpu);
        }
        assert_eq!(came.of_all(4).0, [1, 0, 2, 0]);
        assert_eq!(came.of_all(1).0, [1, 0, 2]);
        assert_eq!(came.of_all(u64::MAX).0.len(), 256);
        assert_eq!(came.of_all(4).each(3), "of each cpu, 3 due: 1 0 2 0");
    }
}
