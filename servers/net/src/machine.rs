//! The net server on the machine: its settings, its memory shared with programs, and the loop that serves.
//!
//! One thread waits in one place for calls, for the device, and for the time when the network has something to do by itself.

use core::convert::Infallible;
use core::fmt;

use ipc::abi::{Error, Handle, NEVER, Rights};
use ipc::proto::init::{Client as InitClient, CommandLine, InitError};
use ipc::proto::net::dispatch;
use ipc::proto::system::INIT;
use ipc::proto::{CallError, Message};
use net::device::Absent;
use net::server::{Machine, Memory, Server};
use net::settings::{self, Settings};
use net::stack::Stack;
use sysroot::{
    Connection, Event, ExitCode, Mapping, OwnedHandle, Port, handle, println, startup, syscall,
    time,
};

/// Where it is called.
const ENDPOINT: &str = "serve:net";
/// What init gets to say what the command line is, in nanoseconds.
const INIT_TIMEOUT: u64 = 1_000_000_000;

/// Why there is no network server, or no longer.
enum Failure {
    /// The program's entry does not give it this.
    NotGiven(&'static str),
    /// init does not say what the command line is.
    CommandLine(CallError<InitError>),
    /// The endpoint can no longer be served.
    Receive(Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGiven(name) => write!(f, "was not given {name}"),
            Self::CommandLine(error) => write!(f, "the command line cannot be read: {error}"),
            Self::Receive(error) => write!(f, "no calls can be received: {error}"),
        }
    }
}

/// Serves until the kernel lets it no longer.
pub fn main() -> ExitCode {
    match serve() {
        Ok(never) => match never {},
        Err(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<Infallible, Failure> {
    let endpoint = startup::handle(ENDPOINT).ok_or(Failure::NotGiven(ENDPOINT))?;
    let settings = read_settings(&command_line()?);
    let device: Option<Absent> = None;
    if device.is_none() {
        println!("no network device");
    }
    // Nobody else knows when exactly this program started.
    let seed = syscall::rdtsc();
    let stack = device.map(|device| Stack::new(device, settings, seed, time::now()));
    let mut server = Server::new(Kernel { endpoint }, stack);
    let mut port = Port::new(endpoint);
    let mut message = Message::new();
    loop {
        server.poll(&mut port);
        let due = server.deadline().unwrap_or(NEVER);
        match port.receive(due, &mut message) {
            Event::Call { badge } => port.serve(badge, &mut message, &mut server, dispatch),
            Event::Closed { badge } => server.closed(badge),
            Event::Notified(_) | Event::TimedOut => {}
            Event::Failed(error) => return Err(Failure::Receive(error)),
        }
    }
}

fn command_line() -> Result<CommandLine, Failure> {
    let init = Connection::named(INIT).ok_or(Failure::NotGiven(INIT))?;
    let line = InitClient::new(init.timeout(INIT_TIMEOUT)).command_line(&());
    line.map_err(Failure::CommandLine)
}

fn read_settings(line: &str) -> Settings {
    settings::read(line).unwrap_or_else(|mistake| {
        println!("{mistake}; the network has no address");
        Settings::None
    })
}

/// The kernel, as the server uses it.
struct Kernel {
    endpoint: Handle,
}

impl Machine for Kernel {
    type Handle = OwnedHandle;
    type Memory = Shared;

    fn now(&self) -> u64 {
        time::now()
    }

    fn mint(&mut self, badge: u64) -> Result<OwnedHandle, Error> {
        handle::mint(self.endpoint, badge, Rights::CALL | Rights::TRANSFER)
    }

    fn map(&mut self, memory: OwnedHandle, pages: u64) -> Result<Shared, Error> {
        Mapping::new(memory.raw(), 0, pages, true).map(Shared)
    }
}

/// Slots of a program, mapped.
struct Shared(Mapping);

impl Memory for Shared {
    fn word(&self, at: usize) -> u64 {
        let mut word = [0; size_of::<u64>()];
        self.0.read(at, &mut word);
        u64::from_le_bytes(word)
    }
    fn set_word(&self, at: usize, word: u64) {
        self.0.write(at, &word.to_le_bytes());
    }
    fn read(&self, at: usize, out: &mut [u8]) {
        self.0.read(at, out);
    }
    fn write(&self, at: usize, bytes: &[u8]) {
        self.0.write(at, bytes);
    }
}
