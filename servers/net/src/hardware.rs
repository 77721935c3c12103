//! The network card on the machine: what init gave of it, put together.

use alloc::vec::Vec;
use core::fmt;

use ipc::abi::startup::names;
use ipc::abi::{Error, Handle};
use ipc::proto::CallError;
use ipc::proto::pci::{BUS_MASTER, COMMAND, Client, PciError};
use net::device::virtio::card::Card;
use net::device::virtio::dma::{Given, give};
use net::device::virtio::fault::Fault;
use net::device::virtio::layout::{Layout, Place};
use net::device::virtio::transport::{Registers, Signal, VirtioPci};
use sysroot::{Connection, Mapping, port, println, startup, syscall, time};

/// Buffers of each queue. The rings and buffers of both fit the DMA memory of the entry in `system.toml`.
const BUFFERS: usize = 128;
/// Vectors that the entry asks for.
const VECTORS_MAX: u8 = 2;

/// The card that this program drives.
pub type NetworkCard = Card<Given, Bars, BUFFERS>;

/// Why there is no card, though the machine has one.
pub enum Failure {
    /// init gave the card, but not this.
    NotGiven(&'static str),
    /// The kernel refused something.
    Kernel(Error),
    /// init refused, or is gone.
    Configuration(CallError<PciError>),
    /// The card does not do what it should.
    Fault(Fault),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGiven(name) => write!(f, "was not given {name}"),
            Self::Kernel(error) => error.fmt(f),
            Self::Configuration(error) => write!(f, "its configuration: {error}"),
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The card, and what else there is to it; `None` on a machine without one.
///
/// # Errors
/// [`Failure`]. The card masters the bus no more then.
pub fn open() -> Result<Option<(NetworkCard, Function)>, Failure> {
    let Some(configuration) = startup::handle(names::PCI) else {
        return Ok(None);
    };
    let mut function = Function::given(Client::new(Connection::new(configuration)))?;
    match set_up(&mut function) {
        Ok(card) => Ok(Some((card, function))),
        Err(failure) => {
            function.silence();
            Err(failure)
        }
    }
}

fn set_up(function: &mut Function) -> Result<NetworkCard, Failure> {
    let layout = Layout::read(|offset| {
        // What went wrong on the way is told as the card being gone.
        function
            .configuration
            .read(&offset)
            .map_err(|error| match error {
                CallError::Service(error) => error,
                CallError::Transport(_) | CallError::Protocol(_) => PciError::Gone,
            })
    })?;
    give_memory()?;
    let device = VirtioPci::new(Bars::map()?, layout, function.signal)?;
    // Only now that it was reset: what the last driver left in it reached nothing so far, and is gone.
    function.master(true).map_err(Failure::Configuration)?;
    let card = Card::new(device)?;
    function.acknowledge().map_err(Failure::Kernel)?;
    let notification = startup::handle(names::NOTIFICATION);
    let notification = notification.ok_or(Failure::NotGiven(names::NOTIFICATION))?;
    port::bind(notification).map_err(Failure::Kernel)?;
    Ok(card)
}

fn give_memory() -> Result<(), Failure> {
    let memory = startup::handle(names::PCI_DMA).ok_or(Failure::NotGiven(names::PCI_DMA))?;
    let (pages, physical) = syscall::memory_info(memory).map_err(Failure::Kernel)?;
    let mapping = Mapping::new(memory, 0, pages, true).map_err(Failure::Kernel)?;
    // SAFETY: the mapping is never undone, it is of one object in a row, and nobody else has it; this program opens its card once.
    unsafe { give(mapping.leak(), physical) };
    Ok(())
}

/// The card as a PCI function: its configuration and its interrupts.
pub struct Function {
    configuration: Client<Connection>,
    interrupts: Vec<Handle>,
    signal: Signal,
    /// An interrupt came that was not acknowledged.
    is_masked: bool,
    /// The log was told of the card's fault.
    is_failed: bool,
}

impl Function {
    fn given(configuration: Client<Connection>) -> Result<Self, Failure> {
        let vectors = (0..VECTORS_MAX)
            .map(|vector| startup::handle(&alloc::format!("{}{vector}", names::PCI_VECTOR)));
        let mut interrupts: Vec<Handle> = vectors.flatten().collect();
        let signal = match interrupts.len() as u8 {
            0 => {
                let line = startup::handle(names::PCI_LINE);
                interrupts.push(line.ok_or(Failure::Fault(Fault::Interrupt))?);
                Signal::Line
            }
            vectors => Signal::Messages { vectors },
        };
        Ok(Self {
            configuration,
            interrupts,
            signal,
            is_masked: false,
            is_failed: false,
        })
    }

    /// Lets the card read and write memory, or not.
    fn master(&mut self, on: bool) -> Result<(), CallError<PciError>> {
        let command = self.configuration.read(&COMMAND)?;
        let bit = if on { BUS_MASTER } else { 0 };
        let command = command & !BUS_MASTER | bit;
        self.configuration.write(&(COMMAND, command))
    }

    /// Keeps the card from memory, and so from interrupting by message, whatever state it is in.
    pub fn silence(&mut self) {
        // Should this fail, init does the same at this program's end.
        let _ = self.master(false);
    }

    /// These interrupts came. They come again once the card rests.
    pub fn interrupted(&mut self, card: &mut NetworkCard, bits: u64) {
        self.is_masked = true;
        card.interrupted(bits);
    }

    /// Ends a batch; whether there is nothing more to do at once. Once a fault is found there is: to answer who waits.
    ///
    /// # Errors
    /// See the call `interrupt_ack`.
    pub fn rest(&mut self, card: &mut NetworkCard) -> Result<bool, Error> {
        let rests = card.rest();
        if let Some(fault) = card.fault() {
            // No interrupt of it is of use any more.
            let is_known = core::mem::replace(&mut self.is_failed, true);
            if !is_known {
                self.silence();
                println!("the network device has failed: {fault}");
            }
            return Ok(is_known);
        }
        if rests && core::mem::take(&mut self.is_masked) {
            self.acknowledge()?;
        }
        Ok(rests)
    }

    /// Lets interrupts come again.
    fn acknowledge(&self) -> Result<(), Error> {
        let mut interrupts = self.interrupts.iter();
        interrupts.try_for_each(|&handle| syscall::interrupt_ack(handle))
    }
}

/// The card's registers, as far as init gave them.
pub struct Bars(Vec<Piece>);

/// Registers from an offset on behind a base address register.
struct Piece {
    bar: u8,
    offset: u32,
    registers: sysroot::Registers,
}

impl Bars {
    fn map() -> Result<Self, Failure> {
        let mut pieces = Vec::new();
        for (name, handle) in startup::page().handles() {
            let place = name.strip_prefix(names::PCI_BAR);
            let Some((bar, offset)) = place.and_then(|place| place.split_once(':')) else {
                continue;
            };
            if let (Ok(bar), Ok(offset)) = (bar.parse(), u32::from_str_radix(offset, 16)) {
                let registers = sysroot::Registers::map(handle).map_err(Failure::Kernel)?;
                pieces.push(Piece {
                    bar,
                    offset,
                    registers,
                });
            }
        }
        Ok(Self(pieces))
    }

    /// The piece that a register is in, and its offset there.
    fn find(&self, place: Place) -> Option<(&sysroot::Registers, usize)> {
        let of_bar = self.0.iter().filter(|piece| piece.bar == place.bar);
        let mut inside = of_bar.filter_map(|piece| {
            let offset = place.offset.checked_sub(piece.offset)? as usize;
            (offset < piece.registers.len()).then_some((&piece.registers, offset))
        });
        inside.next()
    }

    fn read<T: sysroot::registers::Width>(&self, place: Place) -> Option<T> {
        let (registers, offset) = self.find(place)?;
        registers.read(offset)
    }

    fn write<T: sysroot::registers::Width>(&self, place: Place, value: T) {
        if let Some((registers, offset)) = self.find(place) {
            // The trait's contract: what is not there is lost.
            let _ = registers.write(offset, value);
        }
    }
}

impl Registers for Bars {
    fn read8(&self, place: Place) -> u8 {
        self.read(place).unwrap_or(!0)
    }
    fn read16(&self, place: Place) -> u16 {
        self.read(place).unwrap_or(!0)
    }
    fn read32(&self, place: Place) -> u32 {
        self.read(place).unwrap_or(!0)
    }
    fn write8(&self, place: Place, value: u8) {
        self.write(place, value);
    }
    fn write16(&self, place: Place, value: u16) {
        self.write(place, value);
    }
    fn write32(&self, place: Place, value: u32) {
        self.write(place, value);
    }
    fn now(&self) -> u64 {
        time::now()
    }
}
