//! `runtime [CASE]`: does what programs do with threads, locks, channels and the heap, and checks what comes of it; without a case,
//! lists them. It is in the test archive alone. A case that fails panics; one that passes says so.
#![no_std]
#![no_main]
#![expect(clippy::unwrap_used, reason = "a case that fails panics")]

extern crate alloc;

mod heap;
mod port;
mod shortage;
mod sync;
mod threads;

use sysroot::{ExitCode, println, startup};

sysroot::entry!(main);

const CASES: [(&str, fn()); 15] = [
    ("mutex", sync::mutex),
    ("priority", sync::priority),
    ("condvar", sync::condvar),
    ("timeout", sync::timeout),
    ("channel", sync::channel),
    ("once", sync::once),
    ("join", threads::join),
    ("detach", threads::detach),
    ("scope", threads::scope),
    ("limit", threads::limit),
    ("shortage", shortage::threads),
    ("sleep", threads::sleep),
    ("parked", port::parked),
    ("heap", heap::shared),
    ("large", heap::large),
];

fn main() -> Result<(), ExitCode> {
    let Some(wanted) = startup::args().next() else {
        for (name, _) in CASES {
            println!("{name}");
        }
        return Ok(());
    };
    let Some((name, case)) = CASES.iter().find(|(name, _)| *name == wanted) else {
        println!("runtime: CASE `{wanted}`: what `runtime` alone lists");
        return Err(ExitCode::USAGE);
    };
    case();
    println!("{name} ok");
    Ok(())
}
