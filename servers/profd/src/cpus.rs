//! Where samples are missing: how many of a window came from each CPU.
//!
//! Each CPU is due as many as any other, whatever it does. On an emulator whose host is busy, those of a busy CPU are missed more often than
//! those of an idle one; then shares of all samples weigh what ran on one CPU against what ran on another by the samples that came.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Samples of the window that came from each CPU, by its number.
pub type Came = Vec<u64>;

/// Numbers that a CPU can have in a record.
const CPUS_MAX: usize = 1 << u8::BITS;

/// Notes a sample of this CPU.
pub fn note(came: &mut Came, cpu: u8) {
    let cpu = usize::from(cpu);
    if came.len() <= cpu {
        came.resize(cpu + 1, 0);
    }
    came[cpu] += 1;
}

/// The same for all CPUs of the machine, of which some gave none.
#[must_use]
pub fn of_all(came: &Came, cpus: u64) -> Came {
    let cpus = usize::try_from(cpus).unwrap_or(CPUS_MAX).min(CPUS_MAX);
    let mut all = came.clone();
    all.resize(all.len().max(cpus), 0);
    all
}

/// What is to be said if CPUs differ by a tenth more than chance makes.
#[must_use]
pub fn uneven(came: &Came) -> Option<String> {
    let numbered = || (0..).zip(came.iter().copied());
    let (fewest, few) = numbered().min_by_key(|&(_, samples)| samples)?;
    let (most, many): (u64, u64) = numbered().max_by_key(|&(_, samples)| samples)?;
    // The time between two samples is anything from a half to three halves of a period, so the difference between two CPUs with `n` samples
    // each has a standard deviation of 0.41 times the root of `n`. This is five of them, which no two of 64 CPUs come to; and one for where
    // the window begins.
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
pub fn each(came: &Came, due: u128) -> String {
    let came: Vec<String> = came.iter().map(ToString::to_string).collect();
    format!("of each cpu, {due} due: {}", came.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_differ_by_more_than_chance_are_told() {
        assert_eq!(uneven(&Came::new()), None);
        assert_eq!(uneven(&[1000, 904].to_vec()), None);
        assert_eq!(uneven(&[10, 2].to_vec()), None);
        assert_eq!(uneven(&[100, 69].to_vec()), None);
        assert!(uneven(&[100, 68].to_vec()).is_some());
        assert_eq!(uneven(&[5; 64].to_vec()), None);
        let told = uneven(&[998, 990, 412, 997].to_vec()).unwrap_or_default();
        let expected =
            "uneven: cpu 2 has 412 samples, cpu 0 has 998: shares on cpu 2 are too small";
        assert_eq!(told, expected);
        assert!(uneven(&[0, u64::MAX].to_vec()).is_some());
    }

    #[test]
    fn every_cpu_of_the_machine_is_told() {
        let mut came = Came::new();
        for cpu in [2, 0, 2] {
            note(&mut came, cpu);
        }
        assert_eq!(of_all(&came, 4), [1, 0, 2, 0]);
        assert_eq!(of_all(&came, 1), [1, 0, 2]);
        assert_eq!(of_all(&came, u64::MAX).len(), 256);
        assert_eq!(each(&of_all(&came, 4), 3), "of each cpu, 3 due: 1 0 2 0");
    }
}
