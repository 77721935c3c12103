//! PCI: finding the function that a program drives, and giving it that one alone.
//!
//! init alone reaches configuration space. It looks for the function that an entry names (`bus`), measures its registers
//! (`bar`), and keeps from the driver what would reach beyond the function: the table of its message-signalled interrupts
//! (`msix`), of which init writes the entries, and all of configuration space but what `filter` lets through. What a
//! function says of itself is not believed: addresses, lengths and lists are checked, and one that makes no sense has no
//! driver (`function`).
//!
//! Sources: PCI Local Bus Specification 3.0, chapter 6 and appendix D, called "PCI" below.

mod bar;
mod bus;
mod capability;
pub mod devices;
#[cfg(test)]
pub(crate) mod fake;
mod filter;
pub mod function;
mod msix;
mod pieces;
#[cfg(test)]
mod tests;

use core::fmt;

pub use devices::Devices;
pub use function::{Function, Unusable};
pub use msix::Message;

/// A function's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// Bus.
    pub bus: u8,
    /// Device on the bus, 0 to 31.
    pub device: u8,
    /// Function of the device, 0 to 7.
    pub function: u8,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            bus,
            device,
            function,
        } = self;
        write!(f, "{bus:02x}:{device:02x}.{function}")
    }
}

/// Configuration space: 256 bytes of each function, four at a time.
pub trait Config {
    /// Reads the four bytes at an offset, a multiple of 4. All ones where no function is.
    fn read_config(&mut self, at: Address, offset: u8) -> u32;

    /// Writes the four bytes at an offset, a multiple of 4. Lost where no function is.
    fn write_config(&mut self, at: Address, offset: u8, value: u32);
}

/// Vendor and device.
const ID: u8 = 0;
/// Command and, in the upper half, status, whose bits are cleared by writing ones.
const COMMAND: u8 = ipc::proto::pci::COMMAND;
/// Revision and class.
const CLASS: u8 = 8;
/// Header type, in the third byte.
const HEADER: u8 = 0xc;
/// The first base address register.
const BARS: u8 = 0x10;
/// Where a bridge leads, in the second byte.
const BRIDGE: u8 = 0x18;
/// Offset of the first capability.
const CAPABILITIES: u8 = 0x34;
/// Interrupt line and pin.
const INTERRUPT: u8 = 0x3c;
/// End of the standard header.
const HEADER_END: u8 = 0x40;

bitflags::bitflags! {
    /// Command register (PCI, 6.2.2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Command: u16 {
        /// Answers at its I/O ports.
        const PORTS = 1;
        /// Answers at its memory addresses.
        const MEMORY = 1 << 1;
        /// May read and write memory.
        const BUS_MASTER = ipc::proto::pci::BUS_MASTER as u16;
        /// Does not raise its wired interrupt.
        const LINE_OFF = 1 << 10;
    }
}

/// Changes bits of the command register, and keeps the others. No bit of the status is cleared.
fn command(config: &mut impl Config, at: Address, clear: Command, set: Command) {
    let old = config.read_config(at, COMMAND) as u16;
    let new = old & !clear.bits() | set.bits();
    config.write_config(at, COMMAND, new.into());
}
