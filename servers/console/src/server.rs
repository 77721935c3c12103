//! The console on the machine: its ports, its interrupt, and the loop that serves both and the callers.

use core::convert::Infallible;
use core::fmt;

use console::driver::Console;
use console::registers::{Register, Registers};
use console::uart::{Absent, Counters, Uart};
use ipc::abi::startup::names;
use ipc::abi::{Error, Handle, NEVER};
use ipc::proto::{Message, stream};
use sysroot::port::bind;
use sysroot::{Event, Port, println, startup, syscall, time};

/// COM1 of a PC, and its interrupt.
const PORTS: &str = "ports:3f8";
const INTERRUPT: &str = "irq:4";
/// Where it is called.
const ENDPOINT: &str = "serve:console";
/// Its bit in the notification: the first interrupt of the program's entry.
const INTERRUPT_BIT: u64 = 1;
/// Losses are told to the log at most so often, in nanoseconds.
const TELL_EVERY: u64 = 1_000_000_000;

/// What the console's entry has to give it.
#[derive(Clone, Copy)]
pub enum Given {
    /// The UART's I/O ports.
    Ports,
    /// Its interrupt.
    Interrupt,
    /// What the interrupt signals.
    Notification,
    /// The endpoint to serve.
    Endpoint,
}

impl Given {
    const fn name(self) -> &'static str {
        match self {
            Self::Ports => PORTS,
            Self::Interrupt => INTERRUPT,
            Self::Notification => names::NOTIFICATION,
            Self::Endpoint => ENDPOINT,
        }
    }

    fn handle(self) -> Result<Handle, Failure> {
        startup::handle(self.name()).ok_or(Failure::NotGiven(self))
    }
}

/// Why there is no console, or no longer.
pub enum Failure {
    /// The program's entry gives it less than it needs.
    NotGiven(Given),
    /// There is no UART.
    Absent(Absent),
    /// The kernel refused to bind the notification.
    Bind(Error),
    /// The kernel refused to acknowledge the interrupt.
    Acknowledge(Error),
    /// The endpoint can no longer be served.
    Receive(Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGiven(what) => write!(f, "was not given {}", what.name()),
            Self::Absent(absent) => absent.fmt(f),
            Self::Bind(error) => write!(f, "the interrupt cannot be waited for: {error}"),
            Self::Acknowledge(error) => write!(f, "the interrupt cannot be acknowledged: {error}"),
            Self::Receive(error) => write!(f, "no calls can be received: {error}"),
        }
    }
}

/// Serves until the kernel lets it no longer.
pub fn main() -> Result<Infallible, Failure> {
    let interrupt = Given::Interrupt.handle()?;
    let acknowledge = || syscall::interrupt_ack(interrupt).map_err(Failure::Acknowledge);
    let uart = Uart::start(Ports(Given::Ports.handle()?)).map_err(Failure::Absent)?;
    bind(Given::Notification.handle()?).map_err(Failure::Bind)?;
    let mut port = Port::new(Given::Endpoint.handle()?);
    // Unmasked before the UART may raise the line: an edge that comes earlier is gone.
    acknowledge()?;
    let mut console = Console::new(uart);
    let mut losses = Losses::default();
    let mut message = Message::new();
    let mut due = NEVER;
    loop {
        match port.receive(due, &mut message) {
            Event::Call { badge } => {
                port.serve(badge, &mut message, &mut console, stream::dispatch);
            }
            Event::Notified(bits) if bits & INTERRUPT_BIT != 0 => {
                console.interrupt(&mut port);
                acknowledge()?;
                console.rearm();
            }
            Event::Notified(_) => {}
            Event::Closed { badge } => console.closed(badge),
            Event::TimedOut => console.watchdog(&mut port),
            Event::Failed(error) => return Err(Failure::Receive(error)),
        }
        due = console.watch().map_or(NEVER, time::after);
        losses.tell(console.counters());
    }
}

/// The UART behind I/O ports.
struct Ports(Handle);

impl Registers for Ports {
    fn read(&mut self, register: Register) -> u8 {
        match syscall::port_read(self.0, register as u64, 1) {
            Ok(value) => value as u8,
            Err(_) => 0xff,
        }
    }
    fn write(&mut self, register: Register, value: u8) {
        // The trait's contract: what cannot be written is lost.
        let _ = syscall::port_write(self.0, register as u64, 1, value.into());
    }
}

/// What the log was told of the losses.
#[derive(Default)]
struct Losses {
    told: Counters,
    next: u64,
}

impl Losses {
    fn tell(&mut self, counters: Counters) {
        if counters == self.told || time::now() < self.next {
            return;
        }
        println!("{counters} since it started");
        self.told = counters;
        self.next = time::after(TELL_EVERY);
    }
}
