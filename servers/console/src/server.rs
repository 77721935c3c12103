//! The console on the machine: its ports, its interrupt, and the loop that serves both and the callers.

use console::driver::Console;
use console::registers::{Register, Registers};
use console::uart::{Absent, Counters, Uart};
use ipc::abi::startup::names;
use ipc::abi::{Error, Handle, NEVER};
use ipc::proto::{Message, stream};
use sysroot::port::bind;
use sysroot::{Event, ExitCode, Port, println, startup, syscall, time};

/// COM1 of a PC, and its interrupt.
const PORTS: &str = "ports:3f8";
const INTERRUPT: &str = "irq:4";
/// Its bit in the notification: the first interrupt of the program's entry.
const INTERRUPT_BIT: u64 = 1;
/// Losses are told to the log at most so often, in nanoseconds.
const TELL_EVERY: u64 = 1_000_000_000;

/// Why there is no console.
enum Failure {
    /// The program's entry gives it less than it needs.
    NotGiven(&'static str),
    /// There is no UART.
    Absent,
    /// The kernel refused.
    Kernel(Error),
}

impl From<Absent> for Failure {
    fn from(Absent: Absent) -> Self {
        Self::Absent
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Kernel(error)
    }
}

/// Serves until the kernel lets it no longer.
pub fn main() -> ExitCode {
    match serve() {
        Ok(never) => match never {},
        Err(Failure::NotGiven(name)) => println!("was not given {name}"),
        Err(Failure::Absent) => println!("{Absent}"),
        Err(Failure::Kernel(error)) => println!("{error}"),
    }
    ExitCode::FAILURE
}

fn serve() -> Result<core::convert::Infallible, Failure> {
    let interrupt = given(INTERRUPT)?;
    let uart = Uart::start(Ports(given(PORTS)?))?;
    bind(given(names::NOTIFICATION)?)?;
    let mut port = Port::new(given("serve:console")?);
    // Unmasked before the UART may raise the line: an edge that comes earlier is gone.
    syscall::interrupt_ack(interrupt)?;
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
                syscall::interrupt_ack(interrupt)?;
                console.rearm();
            }
            Event::Notified(_) => {}
            Event::Closed { badge } => console.closed(badge),
            Event::TimedOut => console.watchdog(&mut port),
            Event::Failed(error) => return Err(Failure::Kernel(error)),
        }
        due = console.watch().map_or(NEVER, time::after);
        losses.tell(console.counters());
    }
}

fn given(name: &'static str) -> Result<Handle, Failure> {
    startup::handle(name).ok_or(Failure::NotGiven(name))
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
