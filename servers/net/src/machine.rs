//! The net server on the machine: its settings, its memory shared with programs, and the loop that serves.
//!
//! One thread waits in one place for calls, for the device, and for the time when the network has something to do by itself;
//! another one for the calls of the remote shell, which come to an endpoint of their own. Both do the same work after it, one at a
//! time.

use alloc::sync::Arc;
use core::convert::Infallible;
use core::fmt;

use ipc::abi::{Error, Handle, NEVER, Rights};
use ipc::proto::init::{Client as InitClient, CommandLine, InitError};
use ipc::proto::net::dispatch;
use ipc::proto::system::INIT;
use ipc::proto::{CallError, Message, remote};
use net::pace::Pace;
use net::server::{Machine, Memory, Server};
use net::settings::{self, Settings};
use net::stack::Stack;
use sysroot::{
    Connection, Event, ExitCode, Mapping, Mutex, OwnedHandle, Port, handle, println, startup,
    syscall, thread, time,
};

use crate::hardware::{self, Function, NetworkCard};
use crate::shell::{self, Shell};

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
    /// There is no thread for the remote shell.
    Thread(Error),
    /// The card's interrupts can no longer be acknowledged.
    Acknowledge(Error),
    /// The endpoint can no longer be served.
    Receive(Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGiven(name) => write!(f, "was not given {name}"),
            Self::CommandLine(error) => write!(f, "the command line cannot be read: {error}"),
            Self::Thread(error) => write!(f, "no thread for the remote shell: {error}"),
            Self::Acknowledge(error) => write!(f, "no interrupts can be taken: {error}"),
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
    let line = command_line()?;
    let settings = read_settings(&line);
    let (card, wire) = match open_card() {
        Some((card, function)) => (Some(card), Some(Wire::new(function))),
        None => (None, None),
    };
    // Nobody else knows when exactly this program started.
    let seed = syscall::rdtsc();
    let mut stack = card.map(|card| Stack::new(card, settings, seed, time::now()));
    let shell = shell::open(&line, stack.as_mut());
    let remote = shell.as_ref().map(Shell::endpoint);
    let server = Server::new(Kernel { endpoint }, stack);
    let state = Arc::new(Mutex::new(State {
        server,
        shell,
        wire,
        pace: Pace::default(),
    }));
    if let Some(remote) = remote {
        let state = Arc::clone(&state);
        thread::spawn(move || {
            let failure = serve_at(&state, remote, Calls::Remote);
            println!("the remote shell cannot be reached by the shell: {failure}");
        })
        .map_err(Failure::Thread)?;
    }
    Err(serve_at(&state, endpoint, Calls::Net))
}

/// What both threads serve.
struct State {
    server: Server<Kernel, NetworkCard, Port>,
    /// `None` where it is off: who waits for sessions waits for ever.
    shell: Option<Shell>,
    /// `None` on a machine without a card.
    wire: Option<Wire>,
    pace: Pace,
}

impl State {
    /// Lets the network and the remote shell go on; gives the time when they have something to do by themselves.
    fn turn(&mut self, port: &mut Port) -> Result<u64, Failure> {
        self.server.poll(port);
        let shell = match (&mut self.shell, self.server.stack()) {
            (Some(shell), Some(stack)) => shell.turn(stack, port),
            _ => None,
        };
        let dues = [self.server.deadline(), shell];
        let due = dues.into_iter().flatten().min().unwrap_or(NEVER);
        let rests = match (&mut self.wire, self.server.stack()) {
            (Some(wire), Some(stack)) => wire.rest(stack.nic()).map_err(Failure::Acknowledge)?,
            _ => true,
        };
        Ok(due.min(self.pace.after(rests, time::now)))
    }

    /// The card interrupted.
    fn interrupted(&mut self, bits: u64) {
        if let (Some(wire), Some(stack)) = (&mut self.wire, self.server.stack()) {
            wire.interrupted(stack.nic(), bits);
        }
    }
}

/// Of which protocol an endpoint's calls are.
#[derive(Clone, Copy)]
enum Calls {
    Net,
    Remote,
}

/// Serves an endpoint until the kernel lets it no longer. Whichever thread had the last turn waits until the next one is due.
fn serve_at(state: &Mutex<State>, endpoint: Handle, calls: Calls) -> Failure {
    let mut port = Port::new(endpoint);
    let mut message = Message::new();
    loop {
        let due = match state.lock().turn(&mut port) {
            Ok(due) => due,
            Err(failure) => return failure,
        };
        let event = port.receive(due, &mut message);
        let mut state = state.lock();
        if let Event::Notified(bits) = event {
            state.interrupted(bits);
            continue;
        }
        let State { server, shell, .. } = &mut *state;
        match (event, calls, shell) {
            (Event::Call { badge }, Calls::Net, _) => {
                port.serve(badge, &mut message, server, dispatch);
            }
            (Event::Call { badge }, Calls::Remote, Some(shell)) => {
                port.serve(badge, &mut message, shell.remote(), remote::serve);
            }
            (Event::Closed { badge }, Calls::Net, _) => server.closed(badge),
            (Event::Closed { badge }, Calls::Remote, Some(shell)) => shell.remote().closed(badge),
            (Event::Failed(error), ..) => return Failure::Receive(error),
            (Event::Call { .. } | Event::Closed { .. }, Calls::Remote, None)
            | (Event::Notified(_) | Event::TimedOut, ..) => {}
        }
    }
}

/// The card; `None`, and the log says why, if there is none that works.
fn open_card() -> Option<(NetworkCard, Function)> {
    match hardware::open() {
        Ok(Some(opened)) => return Some(opened),
        Ok(None) => println!("no network device"),
        Err(failure) => println!("no network device: {failure}"),
    }
    None
}

/// What is between the card and the loop: interrupts that came and were not acknowledged, and a fault that was told.
struct Wire {
    function: Function,
    interrupted: bool,
    failed: bool,
}

impl Wire {
    const fn new(function: Function) -> Self {
        Self {
            function,
            interrupted: false,
            failed: false,
        }
    }

    /// These interrupts came. They come again once the card rests.
    fn interrupted(&mut self, card: &mut NetworkCard, bits: u64) {
        self.interrupted = true;
        card.interrupted(bits);
    }

    /// Ends a batch; whether the card has nothing more to give at once.
    fn rest(&mut self, card: &mut NetworkCard) -> Result<bool, Error> {
        let rests = card.rest();
        if let Some(fault) = card.fault() {
            if !core::mem::replace(&mut self.failed, true) {
                self.function.silence();
                println!("the network device has failed: {fault}");
            }
            // No interrupt of it is of use any more.
            return Ok(true);
        }
        if rests && core::mem::take(&mut self.interrupted) {
            self.function.acknowledge()?;
        }
        Ok(rests)
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
