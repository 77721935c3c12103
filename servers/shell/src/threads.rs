//! The threads of a session: one serves its terminal, one reads its stream, one runs its commands.

use alloc::string::String;
use core::convert::Infallible;
use core::fmt;

use ipc::abi::{Error, Handle, NEVER, Rights};
use ipc::proto::stream::{CHUNK_MAX, Client as StreamClient};
use ipc::proto::{CallError, Message, init, profd};
use shell::banner::banner;
use shell::command::execute;
use shell::jobs::Jobs;
use shell::protocol::{COMMANDS, Client as TerminalClient, INPUT, Stop, serve};
use shell::session::Session;
use shell::terminal::Terminal;
use sysroot::{Connection, Event, OwnedHandle, Port, handle, startup, syscall, thread, time};

use crate::machine::Machine;
use crate::remote::{Remote, Screen};

/// How long the reader waits before it asks a stream again that failed, in nanoseconds: its server is being restarted.
const RETRY: u64 = 100 * time::MILLISECOND;
/// How often, and at what distance, a profile is told to stop that is not running yet.
const STOP_TRIES: u32 = 20;
const STOP_DISTANCE: u64 = 5 * time::MILLISECOND;

/// Why there is no session.
pub enum Failure {
    /// The program's entry gives it less than it needs.
    NotGiven(&'static str),
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
            Self::Kernel(error) => error.fmt(f),
        }
    }
}

/// What the threads of a session share.
#[derive(Clone, Copy)]
pub struct Wiring {
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
            // A program ended; its shell hears that from init.
            Event::Closed { .. } | Event::Notified(_) | Event::TimedOut => {}
            Event::Failed(error) => return Err(Failure::Kernel(error)),
        }
    }
}

fn given(name: &'static str) -> Result<Handle, Failure> {
    startup::handle(name).ok_or(Failure::NotGiven(name))
}

/// Brings what the user types to the terminal, and ends what Ctrl-C is to end.
fn read(wiring: Wiring, input: OwnedHandle) {
    let mut stream = StreamClient::new(Connection::new(wiring.stream.1));
    let mut terminal = TerminalClient::new(Connection::new(input.raw()));
    loop {
        match stream.read(&(CHUNK_MAX as u16)) {
            Ok(bytes) => match terminal.input(&bytes) {
                Ok(stop) => carry_out(stop, wiring),
                // The terminal is a thread of this process: without it there is no session.
                Err(_) => return,
            },
            Err(_) => time::sleep(RETRY),
        }
    }
}

fn carry_out(stop: Stop, wiring: Wiring) {
    match stop {
        Stop::Nothing => {}
        Stop::Process(pid) => {
            // If it fails the process has ended already, and whoever waits for it knows.
            let _ = init::Client::new(Connection::new(wiring.init)).kill(&pid);
        }
        Stop::Profile => {
            let mut profd = profd::Client::new(Connection::new(wiring.profd));
            // The command said that it is about to ask; its call may still be on its way.
            for _ in 0..STOP_TRIES {
                match profd.stop(&()) {
                    Err(CallError::Service(profd::Refusal::NotRunning)) => {
                        time::sleep(STOP_DISTANCE)
                    }
                    _ => return,
                }
            }
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
