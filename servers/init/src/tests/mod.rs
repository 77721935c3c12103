//! init as its callers and the kernel see it.

mod damage;
mod death;
mod demand;
mod device;
mod launch;
mod watch;

use std::cell::RefCell;
use std::rc::Rc;

use ipc::abi::exit::ExitReason;
use ipc::abi::startup::StartupPage;
use ipc::abi::{Error, Rights};
use ipc::bootfs::Bootfs;
use ipc::proto::init::{
    Args, Client, Ending, Event, ExitReport, Happening, InitError, Name, Spawn, dispatch,
};
use ipc::proto::system::{OnDeath, Program, SystemConfig};
use ipc::proto::{CallError, Disposition, Message, Responder, Transport};

use crate::Supervisor;
use crate::fake::elf::{self, Load};
use crate::fake::{FakeHandle, FakeMachine, Ledger, archive, config, program};
use crate::machine::Machine;
use crate::restart;

type Shared = Rc<RefCell<Ledger>>;

/// A responder that keeps the answers to parked calls.
#[derive(Default)]
struct Desk {
    parked: u32,
    answers: Vec<(u32, ExitReport)>,
}

impl Responder for Desk {
    type Handle = FakeHandle;
    type Parked = u32;

    fn park(&mut self) -> Result<u32, Error> {
        self.parked += 1;
        Ok(self.parked)
    }
    fn answer(&mut self, parked: u32, message: &mut Message<FakeHandle>) -> Result<(), Error> {
        self.answers.push((parked, message.get().unwrap()));
        Ok(())
    }
}

/// init and its callers, without a kernel between them.
struct Bench<'a> {
    init: Supervisor<'a, FakeMachine, Desk>,
    desk: Desk,
    badge: u64,
}

impl Transport for &mut Bench<'_> {
    type Handle = FakeHandle;

    fn call(&mut self, message: &mut Message<FakeHandle>) -> Result<(), Error> {
        match dispatch(&mut self.init, &mut self.desk, self.badge, message) {
            Disposition::Reply => Ok(()),
            Disposition::Parked => Err(Error::TimedOut),
        }
    }
}

impl Bench<'_> {
    fn client(&mut self) -> Client<&mut Self> {
        Client::new(self)
    }
    fn spawn(&mut self, program: &str, held: bool) -> Result<u32, CallError<InitError>> {
        let mut args = Args::new();
        args.push("60").unwrap();
        let program = Name::try_from(program).unwrap();
        self.client().spawn(
            &Spawn {
                program,
                args,
                held,
            },
            None,
        )
    }
    fn poll(&mut self) {
        self.init.poll(&mut self.desk);
    }
    fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let mut position = 0;
        while let Ok(Some(event)) = self.client().next_event(&position) {
            position = event.position + 1;
            events.push(event);
        }
        events
    }
    fn names(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        let mut from = 0;
        while let Ok(Some(info)) = self.client().next(&from) {
            from = info.pid + 1;
            names.push(info.name.as_str().to_owned());
        }
        names
    }
}

fn image() -> Vec<u8> {
    let text = Load {
        address: 0x40_0000,
        flags: 5,
        in_file: 0x1800,
        in_memory: 0x1800,
    };
    let data = Load {
        address: 0x40_2000,
        flags: 6,
        in_file: 0x10,
        in_memory: 0x2000,
    };
    elf::file(0x40_0000, &[text, data])
}

/// Runs a test on a system that has booted: init is 1, console 2, shell 3.
fn booted(test: impl FnOnce(&mut Bench<'_>, &Shared)) {
    let files = ["bin/init", "bin/console", "bin/shell", "bin/spin"].map(|name| (name, image()));
    let bytes = archive(&[files.as_slice(), &[("bin/broken", vec![1; 64])]].concat());
    on(&bytes, test);
}

/// Runs a test on a system that has booted from this archive.
fn on(bytes: &[u8], test: impl FnOnce(&mut Bench<'_>, &Shared)) {
    configured(bytes, config(), test);
}

/// Runs a test on a system that has booted from this archive with this configuration.
fn configured(bytes: &[u8], config: SystemConfig, test: impl FnOnce(&mut Bench<'_>, &Shared)) {
    let machine = FakeMachine::new();
    let ledger = Rc::clone(&machine.0);
    let archive = Bootfs::parse(bytes).unwrap();
    let init = Supervisor::new(machine, archive, config).unwrap();
    let mut bench = Bench {
        init,
        desk: Desk::default(),
        badge: 3,
    };
    bench.init.boot();
    test(&mut bench, &ledger);
    drop(bench);
    assert_eq!(ledger.borrow().open, 0, "a handle was never closed");
}

/// An archive of these programs, with a bit of the last byte of one of them changed.
fn damaged(names: &[&str], name: &str) -> Vec<u8> {
    let files: Vec<_> = names.iter().map(|&name| (name, image())).collect();
    let mut bytes = archive(&files);
    let file = Bootfs::parse(&bytes).unwrap().find(name).unwrap();
    let last = file.offset + file.data.len() - 1;
    bytes[last] ^= 1;
    bytes
}
