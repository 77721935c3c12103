//! What of a function's configuration its driver may read and write.
//!
//! Read: the standard header, and of each capability in the list the bytes that say what the function is; elsewhere a read may do
//! something, and so it may at the end of a vendor's: virtio has a window to its registers there (virtio 1.2, 4.1.4.9). Written: the
//! bit of the command register that lets the function master the bus. Everything else is init's: addresses, the way of interrupts,
//! and the windows by which some functions let their registers be reached from here.

use ipc::proto::pci::{BUS_MASTER, PciError};

use super::capability::{self, Capability};
use super::{Address, COMMAND, Config, HEADER_END};

/// Bytes of a capability of which only the head is known, and of MSI-X.
const HEAD_BYTES: u32 = 4;
const MSIX_BYTES: u32 = 12;
/// Bytes of a vendor's capability that are read at most; and of virtio's for notifications, the type of which is in its fourth byte,
/// with the step behind (virtio 1.2, 4.1.4.4).
const VENDOR_BYTES_MAX: u32 = 16;
const NOTIFY_BYTES_MAX: u32 = 20;
const NOTIFY: u32 = 2;

/// The words that may be read: bit n stands for the four bytes at offset 4n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readable(u64);

impl Readable {
    /// Those of a function with these capabilities.
    pub fn new(config: &mut impl Config, at: Address, list: &[Capability]) -> Self {
        let mut words = range(0, HEADER_END.into());
        for &Capability { id, offset } in list {
            let bytes = match id {
                capability::VENDOR => vendor_bytes(config.read_config(at, offset)),
                capability::MSIX => MSIX_BYTES,
                _ => HEAD_BYTES,
            };
            words |= range(offset.into(), u32::from(offset) + bytes.max(HEAD_BYTES));
        }
        Self(words)
    }

    /// Whether the four bytes at an offset may be read.
    ///
    /// # Errors
    /// `Misaligned`, `NotReadable`.
    pub fn check(self, offset: u8) -> Result<(), PciError> {
        if !offset.is_multiple_of(4) {
            return Err(PciError::Misaligned);
        }
        match self.0 >> (offset / 4) & 1 {
            0 => Err(PciError::NotReadable),
            _ => Ok(()),
        }
    }
}

/// Bytes that may be read of a vendor's capability with this first word.
fn vendor_bytes(head: u32) -> u32 {
    let most = match head >> 24 {
        NOTIFY => NOTIFY_BYTES_MAX,
        _ => VENDOR_BYTES_MAX,
    };
    (head >> 16 & 0xff).min(most)
}

/// The words that bytes from `from` to before `to` lie in.
fn range(from: u32, to: u32) -> u64 {
    let below = |end: u32| 1_u64.checked_shl(end).map_or(!0, |bit| bit - 1);
    below(to.div_ceil(4)) & !below(from / 4)
}

/// Whether the four bytes at an offset may become `value`, where the command register holds `command`.
///
/// # Errors
/// `Misaligned`, `NotWritable`.
pub fn check_write(offset: u8, value: u32, command: u32) -> Result<(), PciError> {
    if !offset.is_multiple_of(4) {
        return Err(PciError::Misaligned);
    }
    let changed = (value ^ command) & 0xffff;
    if offset != COMMAND || changed & !BUS_MASTER != 0 {
        return Err(PciError::NotWritable);
    }
    Ok(())
}
