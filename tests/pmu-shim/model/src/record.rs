//! The shim's record of NMIs, which the tests read: a byte for each, of what it was and on which CPU.

use crate::CPUS_MAX;

/// The port that the shim writes it to, where QEMU has its debugging console.
pub const PORT: u16 = 0xe9;

/// Bits of the CPU's number.
const CPU_BITS: u32 = 4;
const _: () = assert!(CPUS_MAX <= 1 << CPU_BITS);

/// What an NMI was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mark {
    /// A counter's.
    Counter = 4,
    /// A counter's that was dropped.
    Dropped = 5,
    /// A counter's for the second time.
    Late = 6,
    /// One that a CPU sent.
    Sent = 7,
}

impl Mark {
    const ALL: [Self; 4] = [Self::Counter, Self::Dropped, Self::Late, Self::Sent];

    /// Its byte, on a CPU below [`CPUS_MAX`].
    #[must_use]
    pub const fn on(self, cpu: u8) -> u8 {
        (self as u8) << CPU_BITS | cpu
    }

    /// What a byte says, and of which CPU; `None` if it is none of a record.
    #[must_use]
    pub fn read(byte: u8) -> Option<(Self, usize)> {
        let mark = Self::ALL
            .into_iter()
            .find(|mark| mark.on(0) == byte & 0xf0)?;
        let cpu = usize::from(byte & 0xf);
        (cpu < CPUS_MAX).then_some((mark, cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let mut read = 0;
        for (mark, cpu) in (0..=u8::MAX).filter_map(Mark::read) {
            assert_eq!(Mark::read(mark.on(cpu as u8)), Some((mark, cpu)));
            read += 1;
        }
        assert_eq!(read, Mark::ALL.len() * CPUS_MAX);
    }
}
