//! A 16550 for tests, hostile on purpose: it can lose transmitter interrupts, get stuck, have no FIFO, and it overruns
//! when it is not read in time. Behind it, an interrupt controller that forgets edges that come while it is masked.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::registers::{FIFO_WORKS, LineStatus, NO_INTERRUPT, Register, Registers};

/// The device and the controller's line.
#[derive(Debug, Default)]
pub struct Fake {
    /// Bytes in either FIFO, once they are on.
    pub depth: usize,
    /// Every n-th interrupt for the empty transmitter never comes; 0 loses none.
    pub lose_every: u32,
    /// The transmitter never gets empty again.
    pub stuck_transmitter: bool,
    /// The receiver always says that it has a byte.
    pub stuck_receiver: bool,
    /// Nothing is there: reads answer `0xff`.
    pub absent: bool,
    /// What went out on the line.
    pub sent: Vec<u8>,
    /// Bytes lost to overruns.
    pub overrun: usize,
    /// Interrupt waiting at the controller.
    pub interrupt: bool,
    fifos_on: bool,
    masked: bool,
    raised: bool,
    empties: u32,
    empty_pending: bool,
    errors: u8,
    receive: VecDeque<u8>,
    transmit: VecDeque<u8>,
    registers: [u8; 8],
}

/// A handle that the driver and the test share.
#[derive(Clone, Debug)]
pub struct Shared(pub Rc<RefCell<Fake>>);

impl Shared {
    /// A well-behaved UART with FIFOs of that depth.
    pub fn new(depth: usize) -> Self {
        Self(Rc::new(RefCell::new(Fake {
            depth,
            ..Fake::default()
        })))
    }

    /// A byte arrives on the line.
    pub fn arrive(&self, byte: u8) {
        let mut fake = self.0.borrow_mut();
        if fake.receive.len() == fake.capacity() {
            fake.overrun += 1;
            fake.errors |= LineStatus::OVERRUN.bits();
        } else {
            fake.receive.push_back(byte);
        }
        fake.update();
    }

    /// Room for bytes that arrive.
    pub fn room(&self) -> usize {
        let fake = self.0.borrow();
        fake.capacity() - fake.receive.len()
    }

    /// The line carries away all that is in the transmit FIFO.
    pub fn carry(&self) {
        let mut fake = self.0.borrow_mut();
        if fake.stuck_transmitter || fake.transmit.is_empty() {
            return;
        }
        let bytes: Vec<u8> = fake.transmit.drain(..).collect();
        fake.sent.extend(bytes);
        fake.empties += 1;
        let lost = fake.lose_every != 0 && fake.empties.is_multiple_of(fake.lose_every);
        fake.empty_pending = !lost;
        fake.update();
    }

    /// Takes the interrupt as a kernel does: masks the line. Says whether there was one.
    pub fn take_interrupt(&self) -> bool {
        let mut fake = self.0.borrow_mut();
        let taken = std::mem::take(&mut fake.interrupt);
        fake.masked |= taken;
        taken
    }

    /// Unmasks the line. An edge that came meanwhile is gone.
    pub fn acknowledge(&self) {
        self.0.borrow_mut().masked = false;
    }
}

impl Fake {
    fn capacity(&self) -> usize {
        if self.fifos_on { self.depth } else { 1 }
    }

    fn update(&mut self) {
        let enabled = self.registers[Register::InterruptEnable as usize];
        let raised = self.asks_to_receive() || (enabled & 2 != 0 && self.empty_pending);
        if raised && !self.raised && !self.masked {
            self.interrupt = true;
        }
        self.raised = raised;
    }

    fn asks_to_receive(&self) -> bool {
        let enabled = self.registers[Register::InterruptEnable as usize];
        (enabled & 1 != 0 && !self.receive.is_empty()) || (enabled & 4 != 0 && self.errors != 0)
    }

    fn transmitter_empty(&self) -> bool {
        self.transmit.is_empty() && !self.stuck_transmitter
    }

    fn latch(&self) -> bool {
        self.registers[Register::LineControl as usize] & 0x80 != 0
    }
}

impl Registers for Shared {
    fn read(&mut self, register: Register) -> u8 {
        let mut fake = self.0.borrow_mut();
        if fake.absent {
            return 0xff;
        }
        let value = match register {
            Register::Data => {
                fake.receive
                    .pop_front()
                    .unwrap_or(if fake.stuck_receiver { b'!' } else { 0 })
            }
            Register::Fifo => {
                let asks = fake.raised;
                // The transmitter's is the last in order, and the only one that is taken back.
                fake.empty_pending &= fake.asks_to_receive();
                let works = fake.fifos_on && fake.depth > 1;
                (if works { FIFO_WORKS } else { 0 }) | if asks { 0 } else { NO_INTERRUPT }
            }
            Register::LineStatus => {
                let ready = fake.stuck_receiver || !fake.receive.is_empty();
                let empty = fake.transmitter_empty();
                std::mem::take(&mut fake.errors) | u8::from(ready) | if empty { 0x60 } else { 0 }
            }
            other => fake.registers[other as usize],
        };
        fake.update();
        value
    }

    fn write(&mut self, register: Register, value: u8) {
        let mut fake = self.0.borrow_mut();
        match register {
            Register::Data if fake.latch() => assert_eq!(value, 1, "divisor of 115,200"),
            Register::Data => {
                let room = fake.transmit.len() < fake.capacity();
                assert!(room, "a byte was overwritten");
                fake.transmit.push_back(value);
                fake.empty_pending = false;
            }
            Register::Fifo => {
                let on = value & 1 != 0;
                if on != fake.fifos_on {
                    fake.receive.clear();
                    fake.transmit.clear();
                }
                fake.fifos_on = on;
            }
            Register::InterruptEnable if fake.latch() => assert_eq!(value, 0),
            Register::InterruptEnable => {
                let turned_on = value & !fake.registers[1] & 2 != 0;
                if turned_on && fake.transmitter_empty() {
                    fake.empty_pending = true;
                }
                fake.registers[1] = value;
            }
            other => fake.registers[other as usize] = value,
        }
        fake.update();
    }
}
