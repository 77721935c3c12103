//! The threads of a session: one serves its terminal, one reads its stream, one runs its commands.

use core::convert::Infallible;
use core::fmt;

use ipc::abi::{Error, Handle, NEVER, Rights};
use ipc::proto::stream::{CHUNK_MAX, Client as StreamClient};
use ipc::proto::{Message, init, profd};
use shell::banner::banner;
use shell::command::execute;
use shell::completion::complete;
use shell::jobs::Jobs;
use shell::persist::persist;
use shell::protocol::{Asked, COMMANDS, Client as TerminalClient, Completion, INPUT, Stop, serve};
use shell::session::Session;
use shell::terminal::Terminal;
use sysroot::{
    Connection, Event, OwnedHandle, Port, handle, println, record, syscall, thread, time,
};

use crate::machine::{FLUSH_TIMEOUT, Machine};
use crate::remote::{Remote, Screen, Time};
use crate::wiring::{Given, Wiring};

/// How long a completion may take, in nanoseconds: what is typed meanwhile waits for it.
const COMPLETION_NS: u64 = 2000 * time::MILLISECOND;

/// Why there is no session, or no longer.
pub enum Failure {
    /// The program's entry gives it less than it needs.
    NotGiven(Given),
    /// The kernel does not tell this program's own id.
    OwnId(Error),
    /// The kernel refused a terminal's endpoint, or a handle of it.
    Terminal(Error),
    /// The kernel refused the notification that ends a wait.
    Wake(Error),
    /// The kernel refused a thread.
    Thread(Error),
    /// The terminal can no longer be served.
    Receive(Error),
    /// The stream is gone.
    Closed,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGiven(what) => write!(f, "was not given {}", what.name()),
            Self::OwnId(error) => write!(f, "no process id: {error}"),
            Self::Terminal(error) => write!(f, "no terminal: {error}"),
            Self::Wake(error) => write!(f, "nothing to end a wait: {error}"),
            Self::Thread(error) => write!(f, "no thread for the session: {error}"),
            Self::Receive(error) => write!(f, "the terminal cannot be served: {error}"),
            Self::Closed => f.write_str("the session's stream is gone"),
        }
    }
}

/// Runs a session on the stream that this program was given under `name`; `leave` says how it is left.
///
/// # Errors
/// See [`Failure`].
pub fn run(name: &'static str, leave: &'static str) -> Result<Infallible, Failure> {
    let endpoint = syscall::endpoint_create().map_err(Failure::Terminal)?;
    let endpoint = OwnedHandle::new(endpoint);
    let own = record::process_status(Handle::NONE).map_err(Failure::OwnId)?;
    let wake = OwnedHandle::new(syscall::notification_create().map_err(Failure::Wake)?);
    let given = |what: Given| what.handle().ok_or(Failure::NotGiven(what));
    let wiring = Wiring {
        pid: own.pid as u32,
        stream: (name, given(Given::Stream(name))?),
        terminal: endpoint.raw(),
        wake: wake.raw(),
        init: given(Given::Init)?,
        profd: given(Given::Profd)?,
        system: given(Given::System)?,
    };
    let mint = |badge| handle::mint(endpoint.raw(), badge, Rights::CALL).map_err(Failure::Terminal);
    let (input, commands) = (mint(INPUT)?, mint(COMMANDS)?);
    thread::spawn(move || read(wiring, input)).map_err(Failure::Thread)?;
    thread::spawn(move || command(wiring, commands, leave)).map_err(Failure::Thread)?;

    let mut terminal = Terminal::new(Screen::new(wiring.stream.1), leave);
    let mut port = Port::new(endpoint.raw());
    let mut message = Message::new();
    let mut has_begun = false;
    loop {
        match port.receive(NEVER, &mut message) {
            Event::Call { badge } => {
                port.serve(badge, &mut message, &mut terminal, serve);
                if !has_begun && terminal.is_at_prompt() {
                    has_begun = true;
                    log_first_prompt(wiring.stream.1);
                }
            }
            Event::Closed {
                badge: INPUT | COMMANDS,
            } => return Err(Failure::Closed),
            // A program ended; its shell hears that from init.
            Event::Closed { .. } | Event::Notified(_) | Event::TimedOut => {}
            Event::Failed(error) => return Err(Failure::Receive(error)),
        }
    }
}

/// Writes to the log when the first prompt has left the machine: a boot, or a restart of the shell, ends there. The counter
/// tells the time since reset, which the log's own time does not: the firmware ran before it.
fn log_first_prompt(stream: Handle) {
    let connection = Connection::new(stream).timeout(FLUSH_TIMEOUT);
    // Where nobody takes the prompt there is no such time.
    if StreamClient::new(connection).flush(&()).is_ok() {
        println!("first prompt at TSC {}", syscall::rdtsc());
    }
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
        Stop::Wait => {
            // The notification is as old as the session, so the handle is good.
            let _ = syscall::signal(wiring.wake, 1);
        }
        Stop::Profile(number) => {
            // If it fails profd has died, and the profile with it.
            let _ = profd::Client::new(Connection::new(wiring.profd)).stop(&number);
        }
    }
}

/// Runs commands, one after the other, and completes words meanwhile, until the terminal is gone.
fn command(wiring: Wiring, commands: OwnedHandle, leave: &str) {
    let mut machine = Machine::new(wiring);
    let mut session = Remote::new(Connection::new(commands.raw()));
    let mut jobs = Jobs::default();
    let begin = banner(&mut machine, leave);
    // A session that is gone shows when it is asked for what comes next. An error of a command has no other meaning here.
    let _ = fmt::Write::write_str(&mut session, &begin);
    let mut completion = Completion::Nothing;
    let mut at_prompt = false;
    loop {
        if !at_prompt {
            let _ = jobs.report(&mut machine, &mut session);
        }
        match session.next(&completion) {
            Ok(Asked::Line(line)) => {
                let _ = execute(&line, &mut session, &mut machine, &mut jobs);
                // What a command left to be ended is over.
                session.guard(Stop::Nothing);
                at_prompt = false;
            }
            Ok(Asked::Completion { before, again }) => {
                let mut machine = Machine::until(wiring, time::after(COMPLETION_NS));
                completion = complete(&before, again, &mut machine, &mut session);
                at_prompt = true;
            }
            Err(fmt::Error) => return,
        }
    }
}
