//! The configuration of one PCI function, as init lets its driver see and change it.
//!
//! The driver has an endpoint for its own function and for no other: which one, the handle says and not the message. It
//! may read what describes the function, and change one bit: whether the function masters the bus. Where its registers
//! lie, and how it interrupts, is decided by init, and a driver that could write there would have the registers and the
//! interrupts of everybody.

use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

/// Offset of the command register, the one that can be written.
pub const COMMAND: u8 = 4;
/// Bit of the command register by which the function may read and write memory, and so send messages. It is clear when
/// the driver starts.
pub const BUS_MASTER: u32 = 1 << 2;

/// Why init refuses. Nothing was read or written then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum PciError {
    /// The offset is not a multiple of 4.
    Misaligned,
    /// The register is neither of the standard header nor of a capability in the function's list.
    NotReadable,
    /// The register is not the command register, or another bit of it than [`BUS_MASTER`] would change.
    NotWritable,
    /// The function no longer answers, or is another one than it was.
    Gone,
}

impl core::fmt::Display for PciError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Misaligned => "not a multiple of 4",
            Self::NotReadable => "not a register that may be read",
            Self::NotWritable => "only bus mastering may be changed",
            Self::Gone => "the function is gone",
        })
    }
}

impl core::error::Error for PciError {}

crate::protocol! {
    error PciError;
    /// Reads the four bytes at an offset.
    1 Read = read(u8) -> u32;
    /// Writes the four bytes at an offset. Of the upper half of the command register, the status, nothing is written.
    2 Write = write((u8, u32)) -> ();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
        let mut buffer = [0; 16];
        postcard::to_slice(value, &mut buffer).unwrap().to_vec()
    }

    #[test]
    fn wire_bytes_are_pinned() {
        assert_eq!(bytes(&0x3c_u8), [0x3c]);
        assert_eq!(bytes(&0x1af4_u32), [0xf4, 0x35]);
        assert_eq!(bytes(&(COMMAND, BUS_MASTER)), [4, 4]);
        let errors = [
            PciError::Misaligned,
            PciError::NotReadable,
            PciError::NotWritable,
            PciError::Gone,
        ];
        assert_eq!(errors.map(|error| bytes(&error)), [[0], [1], [2], [3]]);
        assert_eq!(OPERATIONS, [(1, "read"), (2, "write")]);
    }
}
