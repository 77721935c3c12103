//! What can be wrong with a device.

use core::fmt;

use ipc::proto::pci::PciError;

use super::layout::LayoutError;

/// Why a device is not driven, or no longer. All but `Memory` are the device's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its configuration cannot be read or written.
    Configuration(PciError),
    /// Its registers are not where a device of this kind has them.
    Layout(LayoutError),
    /// It does not become still when it is reset.
    Reset,
    /// It speaks only what was before version 1.
    Legacy,
    /// It does not accept the features that it offered.
    Features,
    /// Its configuration does not stay the same while it is read.
    Restless,
    /// It has no queue of this number, or one that is too short, or already in use.
    Queue(u16),
    /// It has no way to interrupt, or does not take the one that it is given.
    Interrupt,
    /// The memory for DMA is too little.
    Memory,
    /// It gave back a buffer that it did not have.
    Buffer,
    /// It says that it does not work any more.
    NeedsReset,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration(error) => write!(f, "its configuration: {error}"),
            Self::Layout(error) => error.fmt(f),
            Self::Reset => f.write_str("it cannot be reset"),
            Self::Legacy => f.write_str("it does not speak virtio version 1"),
            Self::Features => f.write_str("it does not accept its own features"),
            Self::Restless => f.write_str("its configuration changes all the time"),
            Self::Queue(number) => write!(f, "its queue {number} cannot be used"),
            Self::Interrupt => f.write_str("it cannot interrupt"),
            Self::Memory => f.write_str("it has too little memory for DMA"),
            Self::Buffer => f.write_str("it gave back a buffer that it did not have"),
            Self::NeedsReset => f.write_str("it says that it has failed"),
        }
    }
}
