//! The net server on the machine: its settings, its memory shared with programs, and the loop that serves.
//!
//! One thread waits in one place for calls, for the device, and for the time when the network has something to do by itself;
//! another one for the calls of the remote shell, which come to an endpoint of their own. Both do the same work after it, one at a
//! time, and hand the lock over: so while frames flood, a call of the remote shell waits for one batch of the other thread, and on one
//! CPU until that one sleeps (`pace.rs`).

use alloc::sync::Arc;
use core::convert::Infallible;
use core::fmt;

use ipc::abi::{Error, Handle, NEVER, Rights};
use ipc::proto::init::{Client as InitClient, CommandLine, InitError};
use ipc::proto::net::dispatch;
use ipc::proto::system::INIT;
use ipc::proto::{CallError, Message};
use net::pace::Pace;
use net::server::{Machine, Memory, Server};
use net::settings::{self, Settings};
use net::stack::Stack;
use sysroot::{
    Connection, Event, Mapping, Mutex, MutexGuard, OwnedHandle, Port, handle, println, startup,
    syscall, thread, time,
};

use crate::hardware::{self, Function, NetworkCard};
use crate::shell::{self, Shell};

/// Where it is called.
const ENDPOINT: &str = "serve:net";
/// What init gets to say what the command line is, in nanoseconds.
const INIT_TIMEOUT: u64 = 1_000_000_000;

/// Why there is no network server, or no longer.
pub enum Failure {
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
pub fn main() -> Result<Infallible, Failure> {
    let endpoint = startup::handle(ENDPOINT).ok_or(Failure::NotGiven(ENDPOINT))?;
    let line = command_line()?;
    let settings = read_settings(&line);
    let (card, function) = open_card().unzip();
    // Nobody else knows when exactly this program started.
    let seed = syscall::rdtsc();
    let mut stack = card.map(|card| Stack::new(card, settings, seed, time::now()));
    let shell = shell::open(&line, stack.as_mut());
    let server = Server::new(Kernel { endpoint }, stack);
    let state = Arc::new(Mutex::new(State {
        server,
        shell,
        function,
        pace: Pace::default(),
    }));
    if let Some(remote) = startup::handle(shell::ENDPOINT) {
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
    shell: Shell,
    /// `None` on a machine without a card.
    function: Option<Function>,
    pace: Pace,
}

impl State {
    /// Lets the network and the remote shell go on; gives the time when they have something to do by themselves.
    fn turn(&mut self, port: &mut Port) -> Result<u64, Failure> {
        self.server.poll(port);
        let stack = self.server.stack();
        let shell = stack.and_then(|stack| self.shell.turn(stack, port));
        self.server.set_remote(self.shell.statistics());
        let dues = [self.server.deadline(), shell];
        let due = dues.into_iter().flatten().min().unwrap_or(NEVER);
        let rests = match (&mut self.function, self.server.stack()) {
            (Some(function), Some(stack)) => {
                let rests = function.rest(stack.nic());
                rests.map_err(Failure::Acknowledge)?
            }
            _ => true,
        };
        // While the card has more nothing else is due by itself: a pause is short, and what is due would end it.
        let pace = self.pace.after(rests, time::now);
        Ok(if rests { due } else { pace })
    }

    /// The card interrupted.
    fn interrupted(&mut self, bits: u64) {
        if let (Some(function), Some(stack)) = (&mut self.function, self.server.stack()) {
            function.interrupted(stack.nic(), bits);
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
        let mut turn = state.lock();
        let due = match turn.turn(&mut port) {
            Ok(due) => due,
            Err(failure) => return failure,
        };
        MutexGuard::hand_over(turn);
        let event = port.receive(due, &mut message);
        let mut state = state.lock();
        if let Event::Notified(bits) = event {
            state.interrupted(bits);
            continue;
        }
        let State { server, shell, .. } = &mut *state;
        match (event, calls) {
            (Event::Call { badge }, Calls::Net) => {
                port.serve(badge, &mut message, server, dispatch);
            }
            (Event::Call { badge }, Calls::Remote) => shell.serve(badge, &mut message, &mut port),
            (Event::Closed { badge }, Calls::Net) => server.closed(badge),
            (Event::Closed { badge }, Calls::Remote) => shell.closed(badge),
            (Event::Failed(error), _) => return Failure::Receive(error),
            (Event::Notified(_) | Event::TimedOut, _) => {}
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
