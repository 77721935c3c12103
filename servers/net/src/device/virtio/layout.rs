//! Where a device has its registers: what its capabilities say (virtio 1.2, 4.1.4).

use core::fmt;

use ipc::proto::pci::PciError;

use super::fault::Fault;

/// Offset of the command and status, and the bit that says that there are capabilities; offset of the first.
const STATUS: u8 = 4;
const HAS_LIST: u32 = 1 << (16 + 4);
const FIRST: u8 = 0x34;
/// A capability of the vendor, and the most that fit the space for them.
const VENDOR: u8 = 9;
const CAPABILITIES_MAX: usize = 48;

/// Bytes of the common registers; of the device's own: address and status; of the interrupt status.
const COMMON_BYTES: u32 = 56;
const OWN_BYTES: u32 = 8;
const INTERRUPT_BYTES: u32 = 1;
const NOTIFY_BYTES: u32 = 2;

/// Registers, behind a base address register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Number of the base address register.
    pub bar: u8,
    /// Where they begin behind it, in bytes.
    pub offset: u32,
    /// How many bytes.
    pub bytes: u32,
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the base address register.
    pub bar: u8,
    /// Offset behind it, in bytes.
    pub offset: u32,
}

impl Window {
    /// Registers of a window begin at an offset; `None` if not all these bytes are in it.
    #[must_use]
    pub fn place(&self, offset: u32, bytes: u32) -> Option<Place> {
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes).then_some(Place {
            bar: self.bar,
            offset: self.offset.checked_add(offset)?,
        })
    }
}

/// What a device says wrong about its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// It does not say where these are.
    Missing(Structure),
    /// They are too few, or end nowhere.
    TooSmall(Structure),
}

/// A structure of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Structure {
    /// What all devices have.
    Common = 1,
    /// Where to tell of new buffers.
    Notify = 2,
    /// Why it interrupted.
    Interrupt = 3,
    /// What only devices of its kind have.
    Own = 4,
}

impl Structure {
    const fn text(self) -> &'static str {
        match self {
            Self::Common => "common",
            Self::Notify => "notification",
            Self::Interrupt => "interrupt",
            Self::Own => "device",
        }
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(which) => write!(f, "it has no {} registers", which.text()),
            Self::TooSmall(which) => write!(f, "its {} registers are too few", which.text()),
        }
    }
}

/// All of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What all devices have.
    pub common: Window,
    /// Where to tell of new buffers.
    pub notify: Window,
    /// Bytes between the places of a queue and the next, as the device counts them.
    pub notify_step: u32,
    /// Why it interrupted.
    pub interrupt: Window,
    /// What only network devices have.
    pub own: Window,
}

impl Layout {
    /// Reads the capabilities by `read`, which gives four bytes of the configuration.
    ///
    /// # Errors
    /// A structure is missing or too small, or the configuration cannot be read.
    pub fn read(mut read: impl FnMut(u8) -> Result<u32, PciError>) -> Result<Self, Fault> {
        let mut windows = [None; 4];
        let mut step = 0;
        let mut read = |offset| read(offset).map_err(Fault::Configuration);
        let mut next = match read(STATUS)? & HAS_LIST {
            0 => 0,
            _ => read(FIRST)? as u8 & !3,
        };
        // A list in a circle says the same again: of each structure the first counts.
        for _ in 0..CAPABILITIES_MAX {
            if next == 0 {
                break;
            }
            let [id, behind, bytes, kind] = read(next)?.to_le_bytes();
            let window = windows.get_mut(usize::from(kind).wrapping_sub(1));
            if let Some(window @ None) = window
                && id == VENDOR
                && let Some(last) = next.checked_add(16)
                && bytes >= 16
            {
                *window = Some(Window {
                    bar: read(last - 12)? as u8,
                    offset: read(last - 8)?,
                    bytes: read(last - 4)?,
                });
                if kind == Structure::Notify as u8 && bytes >= 20 {
                    step = read(last)?;
                }
            }
            next = behind & !3;
        }
        let find = |which: Structure, least: u32| {
            let window: Option<Window> = windows[which as usize - 1];
            let window = window.ok_or(Fault::Layout(LayoutError::Missing(which)))?;
            let fits = window.bytes >= least && window.offset.checked_add(window.bytes).is_some();
            let too_small = Fault::Layout(LayoutError::TooSmall(which));
            fits.then_some(window).ok_or(too_small)
        };
        Ok(Self {
            common: find(Structure::Common, COMMON_BYTES)?,
            notify: find(Structure::Notify, NOTIFY_BYTES)?,
            notify_step: step,
            interrupt: find(Structure::Interrupt, INTERRUPT_BYTES)?,
            own: find(Structure::Own, OWN_BYTES)?,
        })
    }
}
