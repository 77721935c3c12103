//! Whether a machine's memory is enough, and if not, how much would be.

use ipc::abi::layout::PHYSICAL_END;

const MIB: u64 = 1 << 20;

/// Too little memory. Both numbers are of what the machine is given, part of which its firmware keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// MiB that there are.
    pub there: u64,
    /// MiB that would do, and no fewer.
    pub least: u64,
}

impl core::fmt::Display for Shortage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { there, least } = self;
        write!(
            f,
            "not enough memory: {there} MiB, and at least {least} MiB are needed"
        )
    }
}

/// Checks that `ram` bytes are enough. `needed` says what is needed of a machine that was given so many bytes: some of it for
/// each page, so that more memory needs more, but always less than it brings.
///
/// What the firmware keeps is taken to be what `ram` lacks of whole MiB: machines are given those, and a PC's firmware keeps
/// less than one, whatever their size.
///
/// # Errors
/// What is there, and what would be enough. It is the same for all machines that only lack memory.
pub fn check(ram: u64, needed: impl Fn(u64) -> u64) -> Result<(), Shortage> {
    let there = ram.div_ceil(MIB);
    let kept = there * MIB - ram;
    let enough = |mib: &u64| needed(mib * MIB).saturating_add(kept) <= mib * MIB;
    if enough(&there) {
        return Ok(());
    }
    let least = (there..PHYSICAL_END / MIB).find(enough);
    Err(Shortage {
        there,
        least: least.unwrap_or(PHYSICAL_END / MIB),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_machine_is_told_the_same_and_that_is_true(
            fixed in 0u64..64 * MIB, per_page in 0u64..100, kept in 0u64..MIB
        ) {
            let needed = |given: u64| fixed + given / 4096 * per_page;
            let answer = |mib: u64| check(mib * MIB - kept, needed);
            let told: Vec<_> = (1..100).map_while(|mib| answer(mib).err()).collect();
            let least = told.len() as u64 + 1;
            for (shortage, there) in told.iter().zip(1..) {
                prop_assert_eq!(*shortage, Shortage { there, least });
            }
            for enough in least..100 {
                prop_assert_eq!(answer(enough), Ok(()));
                prop_assert!(needed(enough * MIB) + kept <= enough * MIB);
            }
        }
    }

    #[test]
    fn what_no_machine_has_ends_the_search() {
        let shortage = check(MIB, |given| given + 1).unwrap_err();
        assert_eq!(shortage.least, PHYSICAL_END / MIB);
        assert!(check(0, |_| u64::MAX).is_err());
    }
}
