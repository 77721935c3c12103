//! The list of a function's capabilities, which may lead anywhere.

use alloc::vec::Vec;

use super::{Address, CAPABILITIES, COMMAND, Config, HEADER_END};

/// Bit of the status, seen with the command before it: there is a list.
const LIST: u32 = 1 << (16 + 4);

/// A capability that only its vendor defines; its third byte is its length.
pub const VENDOR: u8 = 0x09;
/// MSI-X.
pub const MSIX: u8 = 0x11;

/// One of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// What it is.
    pub id: u8,
    /// Where it begins.
    pub offset: u8,
}

/// The list, in its order, up to where it ends or comes back to itself.
pub fn list(config: &mut impl Config, at: Address) -> Vec<Capability> {
    let mut list: Vec<Capability> = Vec::new();
    if config.read_config(at, COMMAND) & LIST == 0 {
        return list;
    }
    let mut next = config.read_config(at, CAPABILITIES) as u8 & !3;
    while next >= HEADER_END && list.iter().all(|seen| seen.offset != next) {
        let word = config.read_config(at, next);
        let (id, offset) = (word as u8, next);
        list.push(Capability { id, offset });
        next = (word >> 8) as u8 & !3;
    }
    list
}
