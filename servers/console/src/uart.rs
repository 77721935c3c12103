//! Driver of one 16550: start, receive, transmit, and which interrupts are on.
//!
//! It never waits. Every call does bounded work however the device behaves, and what the device lost is counted.
//!
//! The interrupt line is an edge to the controller behind it. An edge that rises while the line is masked there is
//! gone, so [`Uart::quiet`] lowers the line before the interrupt is acknowledged and [`Uart::arm`] raises it again
//! afterwards if there is still a reason.
//!
//! Turning the FIFOs on empties them, and bytes may have come before the driver did: someone types ahead, or a script's
//! commands wait in a pipe. So that is done only on a quiet line ([`Uart::settle`]), and FIFOs that are on are left alone.

use crate::registers::{
    FIFO_WORKS, FifoControl, InterruptEnable, LineControl, LineStatus, ModemControl, NO_INTERRUPT,
    Register, Registers,
};

/// Divisor for 115,200 bits in a second from the PC's 1.8432 MHz crystal (data sheet, table III).
const DIVISOR: u8 = 1;
/// Bytes taken in one call at most: a receiver stuck at "ready" must not keep the server from its callers.
pub const RECEIVE_BURST: usize = 64;
/// Fillings of the transmit FIFO in one call at most.
const TRANSMIT_BURSTS: usize = 16;
/// Bytes in the FIFO of a 16550A.
const FIFO_DEPTH: usize = 16;

/// Nothing at these ports behaves like a 16550.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent;

impl core::fmt::Display for Absent {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("no 16550 UART answers at the console's ports")
    }
}

impl core::error::Error for Absent {}

/// What was lost or odd since the start, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Times that the receive FIFO overran; each lost at least one byte.
    pub overruns: u64,
    /// Bytes with a parity error; they are delivered all the same.
    pub parity: u64,
    /// Bytes without a stop bit; they are delivered all the same.
    pub framing: u64,
    /// Breaks on the line.
    pub breaks: u64,
    /// Times that the transmitter was found empty and the UART did not ask for the interrupt that says so.
    pub lost_interrupts: u64,
    /// Calls that ended with the receiver still ready after [`RECEIVE_BURST`] bytes.
    pub long_bursts: u64,
}

impl core::fmt::Display for Counters {
    /// Those that are not zero, by name.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut between = "";
        for (count, name) in [
            (self.overruns, "overruns"),
            (self.parity, "parity errors"),
            (self.framing, "framing errors"),
            (self.breaks, "breaks"),
            (self.lost_interrupts, "lost interrupts"),
            (self.long_bursts, "long bursts"),
        ] {
            if count > 0 {
                write!(f, "{between}{count} {name}")?;
                between = ", ";
            }
        }
        Ok(())
    }
}

/// One UART.
#[derive(Debug)]
pub struct Uart<R> {
    registers: R,
    depth: usize,
    /// The FIFOs are off, and nobody has tried to turn them on.
    unsettled: bool,
    enabled: InterruptEnable,
    /// What was lost or odd.
    pub counters: Counters,
}

impl<R: Registers> Uart<R> {
    /// Sets 115,200 bits in a second, eight bits and no parity, turns the interrupts off, and the FIFOs on if that loses
    /// nothing.
    ///
    /// # Errors
    /// [`Absent`] if the scratch register keeps no value or the line status reads as an empty bus.
    pub fn start(mut registers: R) -> Result<Self, Absent> {
        registers.write(Register::InterruptEnable, 0);
        for probe in [0x5a, 0xa5] {
            registers.write(Register::Scratch, probe);
            if registers.read(Register::Scratch) != probe {
                return Err(Absent);
            }
        }
        registers.write(Register::LineControl, LineControl::DIVISOR.bits());
        registers.write(Register::Data, DIVISOR);
        registers.write(Register::InterruptEnable, 0);
        registers.write(Register::LineControl, LineControl::EIGHT_BITS.bits());
        let modem = ModemControl::DTR | ModemControl::RTS | ModemControl::OUT2;
        registers.write(Register::ModemControl, modem.bits());
        let mut uart = Self {
            registers,
            depth: 1,
            unsettled: false,
            enabled: InterruptEnable::empty(),
            counters: Counters::default(),
        };
        uart.find_depth();
        uart.unsettled = uart.depth == 1;
        uart.settle();
        if uart.registers.read(Register::LineStatus) == 0xff {
            return Err(Absent);
        }
        Ok(uart)
    }

    /// Whether the FIFOs are still to be turned on, by [`Self::settle`] when the line has been quiet for a while.
    pub fn is_unsettled(&self) -> bool {
        self.unsettled
    }

    /// Turns the FIFOs on, unless a byte waits in either direction.
    pub fn settle(&mut self) {
        if !self.unsettled {
            return;
        }
        let status = self.status();
        if status.contains(LineStatus::IDLE) && !status.contains(LineStatus::DATA_READY) {
            self.registers
                .write(Register::Fifo, FifoControl::ENABLE.bits());
            self.unsettled = false;
            self.find_depth();
        }
    }

    fn find_depth(&mut self) {
        let fifo = self.registers.read(Register::Fifo);
        self.depth = if fifo & FIFO_WORKS == FIFO_WORKS {
            FIFO_DEPTH
        } else {
            1
        };
    }

    /// Hands received bytes to `take`, at most `room` of them and at most [`RECEIVE_BURST`]. What is not taken stays
    /// in the device, which then holds its peer off or overruns.
    pub fn receive(&mut self, room: usize, mut take: impl FnMut(u8)) {
        for _ in 0..room.min(RECEIVE_BURST) {
            if !self.status().contains(LineStatus::DATA_READY) {
                return;
            }
            take(self.registers.read(Register::Data));
        }
        if room > RECEIVE_BURST && self.status().contains(LineStatus::DATA_READY) {
            self.counters.long_bursts += 1;
        }
    }

    /// Sends what `next` gives, as long as the transmitter has room and up to a bound. Returns how many bytes it took.
    pub fn transmit(&mut self, mut next: impl FnMut() -> Option<u8>) -> usize {
        let mut sent = 0;
        for _ in 0..TRANSMIT_BURSTS {
            if !self.status().contains(LineStatus::TRANSMITTER_EMPTY) {
                break;
            }
            for _ in 0..self.depth {
                let Some(byte) = next() else { return sent };
                self.registers.write(Register::Data, byte);
                sent += 1;
            }
        }
        sent
    }

    /// Whether all that was handed over has left. No interrupt tells when it does.
    pub fn is_idle(&mut self) -> bool {
        self.status().contains(LineStatus::IDLE)
    }

    /// Whether the transmitter, whose interrupt is on, is empty and does not ask for it. If it does, the edge has risen, and the interrupt
    /// is on its way, however late a busy host delivers it. In this order, so that a transmitter that gets empty meanwhile is none.
    pub fn has_lost_interrupt(&mut self) -> bool {
        self.status().contains(LineStatus::TRANSMITTER_EMPTY)
            && self.registers.read(Register::Fifo) & NO_INTERRUPT != 0
    }

    /// Turns every interrupt off, which lowers the line.
    pub fn quiet(&mut self) {
        self.enable(InterruptEnable::empty());
    }

    /// Turns on the interrupts that are wanted: for received bytes if there is room for them, for the empty
    /// transmitter if there is something to send. A condition that holds already raises the line at once.
    pub fn arm(&mut self, room: bool, pending: bool) {
        let mut wanted = InterruptEnable::empty();
        wanted.set(InterruptEnable::RECEIVED, room);
        wanted.set(InterruptEnable::LINE_STATUS, room);
        wanted.set(InterruptEnable::TRANSMITTER_EMPTY, pending);
        self.enable(wanted);
    }

    fn enable(&mut self, wanted: InterruptEnable) {
        if wanted != self.enabled {
            self.registers
                .write(Register::InterruptEnable, wanted.bits());
            self.enabled = wanted;
        }
    }

    /// Reads the line status and counts the errors that the reading cleared.
    fn status(&mut self) -> LineStatus {
        let status = LineStatus::from_bits_truncate(self.registers.read(Register::LineStatus));
        let counters = &mut self.counters;
        for (bit, counter) in [
            (LineStatus::OVERRUN, &mut counters.overruns),
            (LineStatus::PARITY, &mut counters.parity),
            (LineStatus::FRAMING, &mut counters.framing),
            (LineStatus::BREAK, &mut counters.breaks),
        ] {
            *counter += u64::from(status.contains(bit));
        }
        status
    }
}
