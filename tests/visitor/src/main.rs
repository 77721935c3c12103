//! `visitor`: has sessions of the remote shell without a network. It starts the program `session` as the shell's door does, is the other end
//! of each, does what its arguments say ([`script`]) and tells what was shown and how each ended.
#![no_std]
#![no_main]

extern crate alloc;

mod script;
mod server;
mod session;

use alloc::vec::Vec;

use ipc::abi::Rights;
use ipc::proto::Message;
use ipc::proto::init::{self, Args, Name, Spawn};
use ipc::proto::remote;
use sysroot::{Connection, Event, ExitCode, Port, handle, println, startup, syscall, time};

use script::Script;
use server::Server;

sysroot::entry!(main);

/// How long all sessions may take together, in nanoseconds.
const DEADLINE_NS: u64 = 60_000 * time::MILLISECOND;

/// What went wrong, in words.
type Failure = &'static str;

fn main() -> Result<(), ExitCode> {
    let words: Vec<&str> = startup::args().collect();
    let Some(scripts) = script::parse(&words) else {
        println!("visitor: N ROLE shell STEP... or N ROLE exec COMMAND STEP..., with / between");
        return Err(ExitCode::USAGE);
    };
    visit(scripts).map_err(|failure| {
        println!("visitor: {failure}");
        ExitCode::FAILURE
    })
}

fn visit(scripts: Vec<Script>) -> Result<(), Failure> {
    let endpoint = syscall::endpoint_create().map_err(|_| "no endpoint")?;
    let mut init = init::Client::new(Connection::named("init").ok_or("was not given init")?);
    let mut server = Server::default();
    let mut scripts = scripts.into_iter();
    let mut port = Port::new(endpoint);
    let mut message = Message::new();
    let mut begin = 1;
    let deadline = time::after(DEADLINE_NS);
    loop {
        while begin > 0
            && let Some(script) = scripts.next()
        {
            begin -= usize::from(script.holds_up());
            for _ in 0..script.count {
                let badge = server.begin(&script);
                let rights = Rights::CALL | Rights::TRANSFER;
                let stdout = handle::mint(endpoint, badge, rights).map_err(|_| "no badge")?;
                let spawn = Spawn {
                    program: Name::cut("session"),
                    args: Args::new(),
                    held: false,
                };
                init.spawn(&spawn, Some(stdout)).map_err(|_| "no process")?;
            }
        }
        if scripts.len() == 0 && server.is_over() {
            break;
        }
        match port.receive(deadline, &mut message) {
            Event::Call { badge } => port.serve(badge, &mut message, &mut server, remote::serve),
            Event::Closed { badge } => server.closed(badge, &mut port),
            Event::Notified(_) => {}
            Event::TimedOut => {
                server.tell();
                return Err("not over in time");
            }
            Event::Failed(_) => return Err("no calls are received"),
        }
        begin += server.begin_next();
    }
    server.tell();
    match server.all_done() {
        true => Ok(()),
        false => Err("a session ended before its user was done"),
    }
}
