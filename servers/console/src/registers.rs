//! The registers of a 16550, as a trait: the driver never knows whether a port or a test's fake is behind it.
//!
//! Names, offsets and bits are those of the National Semiconductor PC16550D data sheet, section 8 (table II).

use bitflags::bitflags;

/// A register, by its offset from the base port. The divisor latch overlays the first two while
/// [`LineControl::DIVISOR`] is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Register {
    /// RBR when read, THR when written; the divisor's low byte under the latch bit.
    Data = 0,
    /// IER; the divisor's high byte under the latch bit.
    InterruptEnable = 1,
    /// IIR when read, FCR when written.
    Fifo = 2,
    /// LCR.
    LineControl = 3,
    /// MCR.
    ModemControl = 4,
    /// LSR. Reading it clears the error bits, so every reading must be looked at whole.
    LineStatus = 5,
    /// SCR: holds a byte, and does nothing else.
    Scratch = 7,
}

/// Access to one UART's registers.
///
/// A read that cannot be made answers `0xff`, as an empty bus does; a write that cannot be made is lost. The driver
/// believes neither that a value written is there to be read nor that a bit ever changes.
pub trait Registers {
    /// Reads a register, with its side effects.
    fn read(&mut self, register: Register) -> u8;
    /// Writes a register.
    fn write(&mut self, register: Register, value: u8);
}

bitflags! {
    /// IER: which conditions raise the interrupt line.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct InterruptEnable: u8 {
        /// A byte was received, or the receive FIFO holds some for too long.
        const RECEIVED = 1 << 0;
        /// The transmitter holding register, or FIFO, is empty.
        const TRANSMITTER_EMPTY = 1 << 1;
        /// An error or a break.
        const LINE_STATUS = 1 << 2;
    }

    /// FCR. With no trigger level the first byte raises the interrupt, and the rest of the FIFO is left for those that
    /// come before it is served.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FifoControl: u8 {
        /// FIFOs on. A change of this bit empties both.
        const ENABLE = 1 << 0;
    }

    /// LCR.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LineControl: u8 {
        /// Eight data bits, no parity, one stop bit.
        const EIGHT_BITS = 0b11;
        /// Shows the divisor latch in place of the first two registers.
        const DIVISOR = 1 << 7;
    }

    /// MCR.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ModemControl: u8 {
        /// Data terminal ready.
        const DTR = 1 << 0;
        /// Request to send: the other side may send.
        const RTS = 1 << 1;
        /// On a PC, connects the interrupt line.
        const OUT2 = 1 << 3;
    }

    /// LSR.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LineStatus: u8 {
        /// A received byte can be read.
        const DATA_READY = 1 << 0;
        /// A byte came while there was no room; it is lost.
        const OVERRUN = 1 << 1;
        /// The byte to be read next had a parity error.
        const PARITY = 1 << 2;
        /// The byte to be read next had no stop bit.
        const FRAMING = 1 << 3;
        /// The line was held low for longer than a byte.
        const BREAK = 1 << 4;
        /// The transmit FIFO is empty: it takes as many bytes as it is deep.
        const TRANSMITTER_EMPTY = 1 << 5;
        /// Nothing is left to be sent, not even in the shift register.
        const IDLE = 1 << 6;
    }
}

/// Bit 0 of IIR: the UART asks for no interrupt. Reading IIR takes back what the empty transmitter asked for (data sheet, table IV).
pub const NO_INTERRUPT: u8 = 1 << 0;
/// Bits 7 and 6 of IIR, both set by a UART whose FIFOs are on and work (data sheet, 8.6.1; a 16550 without A sets bit 7 alone).
pub const FIFO_WORKS: u8 = 0xc0;
