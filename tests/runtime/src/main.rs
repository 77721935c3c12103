//! `runtime CASE`: does what programs do with threads, locks, channels and the heap, and checks what comes of it. It is in the
//! test archive alone. A case that fails panics; one that passes says so.
#![no_std]
#![no_main]
#![expect(clippy::unwrap_used, reason = "a case that fails panics")]

extern crate alloc;

mod heap;
mod sync;
mod threads;

sysroot::entry!(main);

const CASES: [(&str, fn()); 13] = [
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
    ("sleep", threads::sleep),
    ("heap", heap::shared),
    ("large", heap::large),
];

fn main() -> Result<(), sysroot::ExitCode> {
    let wanted = sysroot::startup::args().next().unwrap_or_default();
    let Some((name, case)) = CASES.iter().find(|(name, _)| *name == wanted) else {
        sysroot::print!("runtime: CASE {wanted}: it is one of");
        for (name, _) in CASES {
            sysroot::print!(" {name}");
        }
        sysroot::println!();
        return Err(sysroot::ExitCode::USAGE);
    };
    case();
    sysroot::println!("{name} ok");
    Ok(())
}
