//! The net server on the machine: its endpoint, and the loop that serves it.

use core::convert::Infallible;
use core::fmt;

use ipc::abi::{Error, NEVER};
use ipc::proto::init::{Client as InitClient, InitError};
use ipc::proto::net::dispatch;
use ipc::proto::system::INIT;
use ipc::proto::{CallError, Message};
use net::server::Absent;
use net::settings;
use sysroot::{Connection, Event, ExitCode, Port, println, startup};

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
    let init = Connection::named(INIT).ok_or(Failure::NotGiven(INIT))?;
    let line = InitClient::new(init.timeout(INIT_TIMEOUT)).command_line(&());
    let line = line.map_err(Failure::CommandLine)?;
    if let Err(mistake) = settings::read(&line) {
        println!("{mistake}; the network has no address");
    }
    println!("no network device");
    let mut port = Port::new(endpoint);
    let mut message = Message::new();
    loop {
        match port.receive(NEVER, &mut message) {
            Event::Call { badge } => port.serve(badge, &mut message, &mut Absent, dispatch),
            Event::Closed { .. } | Event::Notified(_) | Event::TimedOut => {}
            Event::Failed(error) => return Err(Failure::Receive(error)),
        }
    }
}
