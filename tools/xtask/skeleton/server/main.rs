//! The @name@ server on the machine: its endpoint, and the loop that serves it.
#![no_std]
#![no_main]

use @name@::Server;
use ipc::abi::NEVER;
use ipc::proto::{Message, @name@ as protocol};
use sysroot::{Event, ExitCode, Port, println};

sysroot::entry!(main);

/// The endpoint, as this program's entry in system.toml has it.
const ENDPOINT: &str = "serve:@name@";

/// Serves until the kernel lets it no longer.
fn main() -> ExitCode {
    let Some(endpoint) = sysroot::startup::handle(ENDPOINT) else {
        println!("was not given {ENDPOINT}");
        return ExitCode::FAILURE;
    };
    let mut port = Port::new(endpoint);
    let mut message = Message::new();
    let mut server = Server::default();
    loop {
        match port.receive(NEVER, &mut message) {
            Event::Call { badge } => {
                port.serve(badge, &mut message, &mut server, protocol::dispatch);
            }
            Event::Closed { .. } | Event::Notified(_) | Event::TimedOut => {}
            Event::Failed(error) => {
                println!("{error}");
                return ExitCode::FAILURE;
            }
        }
    }
}
