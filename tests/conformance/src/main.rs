//! `conformance`: calls every system call with every kind of good and bad argument, and compares each answer with what
//! `docs/abi.md` says. Prints a table of calls and cases; the exit code is 0 if all passed.
#![no_std]
#![no_main]

mod buffer;
mod cases;
mod raw;
mod spec;
mod specs;
mod suite;
mod systematic;
mod table;
mod world;

use ipc::abi::{Error, Handle, Syscall};
use sysroot::{ExitCode, startup, syscall};

sysroot::entry!(main);

fn main() -> Result<(), ExitCode> {
    // A second instance that a case has started.
    if let Some(how) = startup::args().next() {
        cases::peer(how);
    }
    let mut suite = suite::Suite::new();
    cases::starves(&mut suite);
    let mut fit = true;
    let cpus = startup::info().cpus;
    for (spec, turn) in specs::ALL.iter().flat_map(|part| part.iter()).zip(0..) {
        // The CPUs take turns.
        let pinned = syscall::thread_set(Handle::NONE, world::PRIORITY, turn % cpus);
        assert_eq!(pinned, Ok(()), "this thread and a CPU that is there");
        fit &= systematic::fits(spec);
        systematic::run(&mut suite, spec);
        systematic::without_room(&mut suite, spec, Error::LimitReached);
    }
    let calls = Syscall::ALL.len() as u64;
    for number in [calls, calls + 1, 1 << 32, 1 << 63, u64::MAX] {
        suite.check_unknown(number);
    }
    cases::run(&mut suite, cpus);
    if suite.print() && fit {
        Ok(())
    } else {
        Err(ExitCode::FAILURE)
    }
}
