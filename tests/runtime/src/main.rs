//! `runtime CASE`: does what programs do with threads, locks, channels and the heap, and checks what comes of it. It is in the
//! test archive alone. A case that fails panics; one that passes says so.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![cfg_attr(
    target_os = "none",
    expect(clippy::unwrap_used, reason = "a case that fails panics")
)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod heap;
#[cfg(target_os = "none")]
mod sync;
#[cfg(target_os = "none")]
mod threads;

#[cfg(target_os = "none")]
sysroot::entry!(main);

#[cfg(not(target_os = "none"))]
fn main() {}

#[cfg(target_os = "none")]
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

#[cfg(target_os = "none")]
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
