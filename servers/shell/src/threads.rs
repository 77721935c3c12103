//! The threads of a session: one serves its terminal, one reads its stream, one runs its commands.

use alloc::string::String;
use core::convert::Infallible;
use core::fmt;

use ipc::abi::{Error, Handle, NEVER, Rights};
use ipc::proto::stream::{CHUNK_MAX, Client as StreamClient};
use ipc::proto::{Message, init, profd};
use shell::banner::banner;
use shell::command::execute;
use shell::jobs::Jobs;
use shell::persist::persist;
use shell::protocol::{COMMANDS, Client as TerminalClient, INPUT, Stop, serve};
use shell::session::Session;
use shell::terminal::Terminal;
use sysroot::{Connection, Event, OwnedHandle, Port, handle, record, startup, syscall, thread};

use crate::machine::Machine;
use crate::remote::{Remote, Screen, Time};

/// Why there is no session, or no longer.
pub enum Failure {
    /// The program's entry gives it less than it needs.
    NotGiven(&'static str),
    /// The stream is gone.
    Closed,
    /// The kernel refused.
    Kernel(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Kernel(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGiven(name) => write!(f, "was not given {name}"),
            Self::Closed => f.write_str("the session's stream is gone"),
            Self::Kernel(error) => error.fmt(f),
        }
    }
}

/// What the threads of a session share.
#[derive(Clone, Copy)]
pub struct Wiring {
    /// The shell's own process id.
    pub pid: u32,
    /// The stream that carries the session; also its name towards others.
    pub stream: (&'static str, Handle),
    /// The terminal's endpoint, to make handles for programs.
    pub terminal: Handle,
    /// init.
    pub init: Handle,
    /// profd.
    pub profd: Handle,
    /// The system, to ask about memory and the like.
    pub system: Handle,
}

/// Runs a session on the stream that this program was given under `name`; `leave` says how it is left.
///
/// # Errors
/// See [`Failure`].
pub fn run(name: &'static str, leave: &'static str) -> Result<Infallible, Failure> {
    let endpoint = OwnedHandle::new(syscall::endpoint_create()?);
    let wiring = Wiring {
        pid: record::process_status(Handle::NONE)?.pid as u32,
        stream: (name, given(name)?),
        terminal: endpoint.raw(),
        init: given("init")?,
        profd: given("profd")?,
        system: given("system")?,
    };
    let input = handle::mint(endpoint.raw(), INPUT, Rights::CALL)?;
    let commands = handle::mint(endpoint.raw(), COMMANDS, Rights::CALL)?;
    thread::spawn(move || read(wiring, input))?;
    thread::spawn(move || command(wiring, commands, leave))?;

    let mut terminal = Terminal::new(Screen::new(wiring.stream.1), leave);
    let mut port = Port::new(endpoint.raw());
    let mut message = Message::new();
    loop {
        match port.receive(NEVER, &mut message) {
            Event::Call { badge } => port.serve(badge, &mut message, &mut terminal, serve),
            Event::Closed {
                badge: INPUT | COMMANDS,
            } => return Err(Failure::Closed),
            // A program ended; its shell hears that from init.
            Event::Closed { .. } | Event::Notified(_) | Event::TimedOut => {}
            Event::Failed(error) => return Err(Failure::Kernel(error)),
        }
    }
}

fn given(name: &'static str) -> Result<Handle, Failure> {
    startup::handle(name).ok_or(Failure::NotGiven(name))
}

/// Brings what the user types to the terminal, and ends what Ctrl-C is to end. Returns when the stream or the terminal is
/// gone; the terminal hears of it by the handle that is closed.
fn read(wiring: Wiring, input: OwnedHandle) {
    let mut stream = StreamClient::new(Connection::new(wiring.stream.1));
    let mut terminal = TerminalClient::new(Connection::new(input.raw()));
    while let Ok(bytes) = persist(&Time, || stream.read(&(CHUNK_MAX as u16)))
        && let Ok(stop) = terminal.input(&bytes)
    {
        carry_out(stop, wiring);
    }
}

fn carry_out(stop: Stop, wiring: Wiring) {
    match stop {
        Stop::Nothing => {}
        Stop::Process(pid) => {
            // If it fails the process has ended already, and whoever waits for it knows.
            let _ = init::Client::new(Connection::new(wiring.init)).kill(&pid);
        }
        Stop::Profile(number) => {
            // If it fails profd has died, and the profile with it.
            let _ = profd::Client::new(Connection::new(wiring.profd)).stop(&number);
        }
    }
}

/// Runs commands, one after the other, until the terminal is gone.
fn command(wiring: Wiring, commands: OwnedHandle, leave: &str) {
    let mut machine = Machine::new(wiring);
    let mut session = Remote::new(Connection::new(commands.raw()));
    let mut jobs = Jobs::default();
    let begin = banner(&mut machine, leave);
    let mut going = fmt::Write::write_str(&mut session, &begin);
    while going.is_ok() {
        going = jobs
            .report(&mut machine, &mut session)
            .and_then(|()| session.next_line())
            .and_then(|line: String| execute(&line, &mut session, &mut machine, &mut jobs));
        // What a command left to be ended is over.
        session.guard(Stop::Nothing);
    }
}
