//! One function: whether it can be driven, and its way from one driver to the next.
//!
//! A function that nobody drives neither masters the bus nor interrupts. init turns neither on by itself: its driver does the one,
//! once it has reset the function, so that what the last driver left in it reaches nothing.

use alloc::vec::Vec;
use core::fmt;

use ipc::proto::pci::PciError;

use super::bar;
use super::capability::{self, MSIX};
use super::filter::{Readable, check_write};
use super::msix::{Message, Msix};
use super::pieces::{self, Piece};
use super::{Address, COMMAND, Command, Config, HEADER, ID, INTERRUPT, bus, command};
use crate::machine::Machine;
use ipc::abi::Error;

/// Why a function has no driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// Its header is not of the kind that devices have.
    NotADevice,
    /// The firmware gave this base address register no address.
    NoAddress(u8),
    /// This base address register makes no sense.
    BadBar(u8),
    /// Its table of messages is not in its registers.
    BadTable,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotADevice => f.write_str("its header is not a device's"),
            Self::NoAddress(bar) => write!(f, "BAR {bar} has no address"),
            Self::BadBar(bar) => write!(f, "BAR {bar} makes no sense"),
            Self::BadTable => f.write_str("its MSI-X table is not in its registers"),
        }
    }
}

/// How a function interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupts {
    /// By messages.
    Messages(Msix),
    /// By the line that the firmware wired it to, on the ISA bus's interrupts.
    Line(u8),
    /// Not at all, as far as can be known.
    None,
}

/// A function that can be driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its place.
    pub at: Address,
    /// Vendor and, in the upper half, device.
    pub id: u32,
    /// Its registers, as far as a driver gets them.
    pub pieces: Vec<Piece>,
    /// How it interrupts.
    pub interrupts: Interrupts,
    readable: Readable,
}

impl Function {
    /// The first one of this vendor and these devices.
    pub fn find(config: &mut impl Config, vendor: u16, devices: &[u16]) -> Option<Address> {
        bus::find(config, |its, device| {
            its == vendor && devices.contains(&device)
        })
    }

    /// Looks at a function, and leaves it quiet.
    ///
    /// # Errors
    /// [`Unusable`].
    pub fn examine(config: &mut impl Config, at: Address) -> Result<Self, Unusable> {
        if config.read_config(at, HEADER) >> 16 & 0x7f != 0 {
            return Err(Unusable::NotADevice);
        }
        let bars = bar::measure(config, at)?;
        let list = capability::list(config, at);
        let msix = list.iter().find(|capability| capability.id == MSIX);
        let interrupts = match msix {
            Some(&capability) => Interrupts::Messages(Msix::read(config, at, capability, &bars)?),
            None => line(config.read_config(at, INTERRUPT)),
        };
        let kept = match interrupts {
            Interrupts::Messages(msix) => alloc::vec![msix.table, msix.pending],
            Interrupts::Line(_) | Interrupts::None => Vec::new(),
        };
        let pieces = bars.iter().flat_map(|bar| pieces::of(bar, &kept)).collect();
        let function = Self {
            at,
            id: config.read_config(at, ID),
            pieces,
            interrupts,
            readable: Readable::new(config, at, &list),
        };
        function.quiesce(config);
        Ok(function)
    }

    /// Takes the function from its driver: it no longer reads or writes memory, and no longer interrupts.
    pub fn quiesce(&self, config: &mut impl Config) {
        command(config, self.at, Command::BUS_MASTER, Command::LINE_OFF);
        if let Interrupts::Messages(msix) = self.interrupts {
            msix.disable(config, self.at);
        }
    }

    /// Readies it for a driver, with these messages if it has a table. It answers at its memory addresses, and at no ports.
    ///
    /// # Errors
    /// The kernel refuses to map the table.
    pub fn ready<M: Machine>(&self, machine: &mut M, messages: &[Message]) -> Result<(), Error> {
        self.quiesce(machine);
        command(machine, self.at, Command::PORTS, Command::MEMORY);
        match self.interrupts {
            Interrupts::Messages(msix) => {
                machine.store(msix.table.base, &msix.words(messages))?;
                msix.enable(machine, self.at);
            }
            Interrupts::Line(_) => {
                command(machine, self.at, Command::LINE_OFF, Command::empty());
            }
            Interrupts::None => {}
        }
        Ok(())
    }

    /// Messages that it can be given.
    #[must_use]
    pub fn messages_max(&self) -> u16 {
        match self.interrupts {
            Interrupts::Messages(msix) => msix.entries,
            Interrupts::Line(_) | Interrupts::None => 0,
        }
    }

    /// Reads for its driver.
    ///
    /// # Errors
    /// The register is not one that it may read, or the function is gone.
    pub fn read(&self, config: &mut impl Config, offset: u8) -> Result<u32, PciError> {
        self.readable.check(offset)?;
        self.check_there(config)?;
        Ok(config.read_config(self.at, offset))
    }

    /// Writes for its driver.
    ///
    /// # Errors
    /// It may not write that, or the function is gone.
    pub fn write(&self, config: &mut impl Config, offset: u8, value: u32) -> Result<(), PciError> {
        self.check_there(config)?;
        check_write(offset, value, config.read_config(self.at, COMMAND))?;
        config.write_config(self.at, offset, value & 0xffff);
        Ok(())
    }

    fn check_there(&self, config: &mut impl Config) -> Result<(), PciError> {
        let is_there = config.read_config(self.at, ID) == self.id;
        is_there.then_some(()).ok_or(PciError::Gone)
    }
}

/// The wired interrupt that the firmware noted in the function: one of the ISA bus's. Where else its pin is wired to is said
/// by the machine's AML alone.
const fn line(word: u32) -> Interrupts {
    match ((word >> 8) as u8, word as u8) {
        (1..=4, line @ 1..=15) => Interrupts::Line(line),
        _ => Interrupts::None,
    }
}
