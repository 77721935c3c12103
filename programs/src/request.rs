//! What `front` asks of `relay`, and `relay` of `back`: an empty message, and an empty answer when the work is done. Each may have work
//! of its own to do for a request.
//!
//! There is nothing to encode, so this is below the protocols of `protocol!`. It also keeps the frames of each program few: a
//! report shows all three of them within its usual depth.

use core::hint::{black_box, spin_loop};
use core::ops::RangeInclusive;

use ipc::abi::{Error, Handle, NEVER, Tag};
use ipc::proto::{Disposition, Message};
use sysroot::syscall::message::{self, NO_WORDS};
use sysroot::{Event, ExitCode, OwnedHandle, Port, println, startup};

/// What one of them may have to do itself for a request, in thousands of turns of a loop.
pub const WORK: RangeInclusive<u64> = 0..=1000;
/// Turns in a unit of work.
const UNIT: u64 = 1000;

/// Does so much work. It is part of the function that calls it, which is each program's own.
#[inline(always)]
pub fn toil(work: u64) {
    for _ in 0..work {
        for turn in 0..UNIT {
            black_box(turn);
        }
        spin_loop(); // lets another CPU run where an emulator runs one at a time
    }
}

/// Asks a server to do its work, and waits until it has.
///
/// # Errors
/// The exit code if it is gone, after a line that says so: its endpoint stays dead, also when it is started again.
#[inline]
pub fn ask(server: &str) -> Result<(), ExitCode> {
    let asked = message::call(given(server)?, Tag::default(), NO_WORDS, NEVER);
    asked.map(drop).map_err(|error| {
        let own = startup::name();
        println!("{own}: {server}: {error}; start it before {own}");
        ExitCode::FAILURE
    })
}

/// Serves an endpoint for as long as the work that it is asked for can be done.
///
/// # Errors
/// That of the work, or the exit code if the endpoint cannot be served, after a line that says so.
#[inline]
pub fn serve(
    endpoint: &str,
    mut work: impl FnMut() -> Result<(), ExitCode>,
) -> Result<(), ExitCode> {
    let mut port = Port::new(given(endpoint)?);
    let mut message = Message::new();
    loop {
        match port.receive(NEVER, &mut message) {
            Event::Call { badge } => {
                work()?;
                port.serve(badge, &mut message, &mut (), answer);
            }
            Event::Failed(error) => return Err(failure(endpoint, error)),
            Event::Notified(_) | Event::Closed { .. } | Event::TimedOut => {}
        }
    }
}

/// The handle that the program's entry in `system.toml` gives it under this name.
fn given(name: &str) -> Result<Handle, ExitCode> {
    startup::handle(name).ok_or_else(|| failure(name, Error::NotFound))
}

fn failure(name: &str, error: Error) -> ExitCode {
    println!("{}: {name}: {error}", startup::name());
    ExitCode::FAILURE
}

/// Handles that came with a call are closed.
fn answer((): &mut (), _: &mut Port, _: u64, message: &mut Message<OwnedHandle>) -> Disposition {
    *message = Message::new();
    Disposition::Reply
}
