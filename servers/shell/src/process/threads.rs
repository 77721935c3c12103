//! The threads of a session: one serves its terminal, one reads its stream, one runs its commands.

use core::convert::Infallible;
use core::fmt;

use ipc::abi::startup::names;
use ipc::abi::{Error, Handle, NEVER, Rights};
use ipc::proto::remote::{self, Purpose, Role, Status};
use ipc::proto::stream::{CHUNK_MAX, Client as StreamClient};
use ipc::proto::{Message, init, profd};
use sysroot::{
    Connection, Event, OwnedHandle, Port, handle, println, record, startup, syscall, thread, time,
};

use super::ends::{Screen, TerminalSession, Time};
use super::machine::{FLUSH_TIMEOUT, Machine};
use super::wiring::{Given, Whose, Wiring};
use crate::banner::{banner, greeting};
use crate::command::execute;
use crate::completion::complete;
use crate::crlf::CrLf;
use crate::exec::Exec;
use crate::jobs::Jobs;
use crate::persist::persist;
use crate::protocol::{
    Asked, COMMANDS, Client as TerminalClient, Completion, Front, INPUT, Stop, serve,
};
use crate::session::{Leave, Session};
use crate::terminal::Terminal;

/// How long a completion may take, in nanoseconds: what is typed meanwhile waits for it.
const COMPLETION_NS: u64 = 2000 * time::MILLISECOND;
/// How long a command may take to end once its session is gone, in nanoseconds. None that is told to takes longer than
/// `kill`, which waits for an end.
const GONE_NS: u64 = 5000 * time::MILLISECOND;

/// How long init or profd may take to end something, in nanoseconds.
const STOP_NS: u64 = 1000 * time::MILLISECOND;

/// How the session on the console is left: not at all.
const ON_CONSOLE: Leave = Leave {
    how: "leave with `poweroff`, or Ctrl-A X",
    ends: false,
};
/// How one from elsewhere is.
const FROM_ELSEWHERE: Leave = Leave {
    how: "leave with `exit`, or Ctrl-D",
    ends: true,
};

/// Why there is no session, or no longer.
pub enum Failure {
    /// The program's entry gives it less than it needs.
    NotGiven(Given),
    /// The program was started without a session.
    NoSession,
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
            Self::NoSession => f.write_str("the shell starts it, for a session from elsewhere"),
            Self::OwnId(error) => write!(f, "no process id: {error}"),
            Self::Terminal(error) => write!(f, "no terminal: {error}"),
            Self::Wake(error) => write!(f, "nothing to end a wait: {error}"),
            Self::Thread(error) => write!(f, "no thread for the session: {error}"),
            Self::Receive(error) => write!(f, "the terminal cannot be served: {error}"),
            Self::Closed => f.write_str("the session's stream is gone"),
        }
    }
}

/// Runs the session on the console.
///
/// # Errors
/// See [`Failure`].
pub fn console() -> Result<Infallible, Failure> {
    let stream = given(Whose::Console.stream())?;
    let terminal = Terminal::new(Screen::new(stream), ON_CONSOLE);
    let mut has_begun = false;
    let log_first_prompt = |terminal: &Terminal<_, _>| {
        if !has_begun && terminal.is_at_prompt() {
            has_begun = true;
            log_prompt(stream);
        }
    };
    run(
        Whose::Console,
        terminal,
        log_first_prompt,
        |wiring, commands| {
            let session = TerminalSession::new(commands, Role::Control, ON_CONSOLE);
            converse(wiring, session, "");
        },
    )
}

/// Runs the session that this program was started for, to its end.
///
/// # Errors
/// See [`Failure`]; that the session is gone is none.
pub fn remote() -> Result<(), Failure> {
    let session = startup::handle(names::STDOUT).ok_or(Failure::NoSession)?;
    let opened = remote::Client::new(Connection::new(session)).describe(&());
    let opened = opened.map_err(|_| Failure::NoSession)?;
    let (whose, role) = (Whose::Remote(opened.number), opened.role);
    let screen = Screen::new(session);
    let Err(failure) = match opened.purpose {
        Purpose::Shell => {
            let terminal = Terminal::new(CrLf(screen), FROM_ELSEWHERE);
            run(
                whose,
                terminal,
                |_| {},
                move |wiring, commands| {
                    let session = TerminalSession::new(commands, role, FROM_ELSEWHERE);
                    converse(wiring, session, &greeting(&opened));
                },
            )
        }
        Purpose::Exec(ref line) => {
            let line = line.clone();
            run(
                whose,
                Exec::new(screen),
                |_| {},
                move |wiring, commands| {
                    let session = TerminalSession::new(commands, role, FROM_ELSEWHERE);
                    obey(wiring, session, &line);
                },
            )
        }
    };
    match failure {
        Failure::Closed => Ok(()),
        failure => Err(failure),
    }
}

fn given(what: Given) -> Result<Handle, Failure> {
    what.handle().ok_or(Failure::NotGiven(what))
}

/// Runs a session with `front` in front of its stream and `commands` in a thread that runs its commands. `served` sees the front
/// after each call.
fn run<F: Front<Port>>(
    whose: Whose,
    mut front: F,
    mut served: impl FnMut(&F),
    commands: impl FnOnce(Wiring, OwnedHandle) + Send + 'static,
) -> Result<Infallible, Failure> {
    let endpoint = syscall::endpoint_create().map_err(Failure::Terminal)?;
    let endpoint = OwnedHandle::new(endpoint);
    let own = record::process_status(Handle::NONE).map_err(Failure::OwnId)?;
    let wake = OwnedHandle::new(syscall::notification_create().map_err(Failure::Wake)?);
    let wiring = Wiring {
        pid: own.pid as u32,
        whose,
        stream: given(whose.stream())?,
        terminal: endpoint.raw(),
        wake: wake.raw(),
        init: given(Given::Init)?,
        profd: given(Given::Profd)?,
        system: given(Given::System)?,
    };
    let mint = |badge| handle::mint(endpoint.raw(), badge, Rights::CALL).map_err(Failure::Terminal);
    let (to_input, to_commands) = (mint(INPUT)?, mint(COMMANDS)?);
    thread::spawn(move || read(wiring, to_input)).map_err(Failure::Thread)?;
    thread::spawn(move || commands(wiring, to_commands)).map_err(Failure::Thread)?;

    let mut port = Port::new(endpoint.raw());
    let mut message = Message::new();
    let mut deadline = NEVER;
    loop {
        match port.receive(deadline, &mut message) {
            Event::Call { badge } => {
                port.serve(badge, &mut message, &mut front, serve);
                served(&front);
            }
            // The stream is gone; a command that runs is told so, and then ends its thread.
            Event::Closed { badge: INPUT } => {
                carry_out(front.hang_up(&mut port), wiring);
                deadline = time::after(GONE_NS);
            }
            Event::Closed { badge: COMMANDS } | Event::TimedOut => return Err(Failure::Closed),
            // A program ended; its shell hears that from init.
            Event::Closed { .. } | Event::Notified(_) => {}
            Event::Failed(error) => return Err(Failure::Receive(error)),
        }
    }
}

/// Writes to the log when a prompt has left the machine: a boot, or a restart of the shell, ends there. The counter
/// tells the time since reset, which the log's own time does not: the firmware ran before it.
fn log_prompt(stream: Handle) {
    let connection = Connection::new(stream).timeout(FLUSH_TIMEOUT);
    // Where nobody takes the prompt there is no such time.
    if StreamClient::new(connection).flush(&()).is_ok() {
        println!("first prompt at TSC {}", syscall::rdtsc());
    }
}

/// Brings what the user types to the terminal, and ends what Ctrl-C is to end. Returns when the stream or the terminal is
/// gone; the terminal hears of it by the handle that is closed.
fn read(wiring: Wiring, input: OwnedHandle) {
    let mut stream = StreamClient::new(Connection::new(wiring.stream));
    let mut terminal = TerminalClient::new(Connection::new(input.raw()));
    while let Ok(bytes) = persist(&Time, || stream.read(&(CHUNK_MAX as u16)))
        && let Ok(stop) = terminal.input(&bytes)
    {
        carry_out(stop, wiring);
    }
}

/// Ends what Ctrl-C, or the end of the session, is to end. Who does not answer in time is not waited for: the next Ctrl-C may be
/// for something else.
fn carry_out(stop: Stop, wiring: Wiring) {
    let within = |endpoint| Connection::new(endpoint).timeout(STOP_NS);
    match stop {
        Stop::Nothing => {}
        Stop::Process(pid) => {
            // If it fails the process has ended already, and whoever waits for it knows.
            let _ = init::Client::new(within(wiring.init)).kill(&pid);
        }
        Stop::Wait => {
            // The notification is as old as the session, so the handle is good.
            let _ = syscall::signal(wiring.wake, 1);
        }
        Stop::Profile(number) => {
            // If it fails profd has died, and the profile with it.
            let _ = profd::Client::new(within(wiring.profd)).stop(&number);
        }
    }
}

/// Runs commands, one after the other, and completes words meanwhile, until the session is left or its terminal is gone.
fn converse(wiring: Wiring, mut session: TerminalSession, greeting: &str) {
    let mut machine = Machine::new(wiring);
    let mut jobs = Jobs::default();
    let begin = banner(&mut machine, session.how_left()) + greeting;
    // A session that is gone shows when it is asked for what comes next. An error of a command has no other meaning here.
    let _ = fmt::Write::write_str(&mut session, &begin);
    let mut completion = Completion::Nothing;
    let mut at_prompt = false;
    while !session.has_left() {
        if !at_prompt {
            let _ = jobs.report(&mut machine, &mut session);
        }
        match session.next(&completion) {
            Ok(Asked::Line(line)) => {
                execute(&line, &mut session, &mut machine, &mut jobs);
                // What a command left to be ended is over.
                session.guard(Stop::Nothing);
                at_prompt = false;
            }
            Ok(Asked::Completion { before, again }) => {
                let mut machine = Machine::until(wiring, time::after(COMPLETION_NS));
                completion = complete(&before, again, &mut machine, &mut session);
                at_prompt = true;
            }
            Ok(Asked::Leave) => break,
            Err(fmt::Error) => return,
        }
    }
    finish(wiring, Status::Success);
}

/// Runs one command.
fn obey(wiring: Wiring, mut session: TerminalSession, line: &str) {
    let status = execute(
        line,
        &mut session,
        &mut Machine::new(wiring),
        &mut Jobs::default(),
    );
    // What was written goes out first.
    session.guard(Stop::Nothing);
    finish(wiring, status);
}

/// Ends a session that came from elsewhere, and says how.
fn finish(wiring: Wiring, status: Status) {
    // One that is gone has ended without.
    let _ = remote::Client::new(Connection::new(wiring.stream)).finish(&status);
}
