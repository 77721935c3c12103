//! Cases that need more than one wrong argument: what a call does when it succeeds, what it does when something has run out, and
//! what others do meanwhile.

extern crate alloc;

mod device;
mod inspection;
mod life;
mod mapping;
mod memory;
mod message;
mod notification;
mod object;
mod profiler;
mod race;
mod system;

pub use life::peer;
pub use object::starves;

use alloc::boxed::Box;

use ipc::abi::info::ThreadState;
use ipc::abi::startup::names;
use ipc::abi::{Error, Handle, Syscall};
use sysroot::thread::{self, JoinHandle};
use sysroot::{syscall, time};

use crate::raw::Returned;
use crate::spec::Want;
use crate::suite::Suite;
use crate::world::{PRIORITY, given, made, until};

/// A time that comes soon, in nanoseconds from now.
const SOON: u64 = 2 * time::MILLISECOND;

/// Everything that is not systematic, with other threads on this CPU, then on the last one.
pub fn run(suite: &mut Suite, cpus: u64) {
    life::run(suite);
    for cpu in [0, cpus - 1] {
        message::run(suite, cpu);
        notification::run(suite, cpu);
        race::run(suite, cpu);
        inspection::run(suite, cpu);
        if cpus == 1 {
            break;
        }
    }
    memory::run(suite);
    mapping::run(suite);
    object::run(suite);
    device::run(suite);
    system::run(suite, cpus);
    profiler::run(suite);
}

/// A thread on a CPU.
fn on<T: Send + 'static>(cpu: u64, body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let body: Box<dyn FnOnce() -> T + Send> = Box::new(body);
    made(
        "a thread",
        thread::spawn(move || {
            made("a pin", syscall::thread_set(Handle::NONE, PRIORITY, cpu));
            body()
        }),
    )
}

/// What a thread returned.
fn joined<T>(thread: JoinHandle<T>) -> T {
    made("the end of a thread", thread.join())
}

/// Waits until a thread is in a state; whether it came to that.
fn reaches(thread: Handle, state: ThreadState) -> bool {
    until(|| syscall::thread_info(thread).is_ok_and(|info| info.1 == state as u64))
}

/// Waits until a thread is in a state; without it, nothing after it would mean anything.
fn await_state(thread: Handle, state: ThreadState) {
    let there = reaches(thread, state);
    assert!(there, "a thread does not become {}", state.name());
}

/// The first thread, for others that wait until it waits.
fn first_thread() -> Handle {
    given(names::THREAD)
}

/// A result as a case wants it.
fn status<T>(result: Result<T, Error>) -> Want {
    result.map(|_| ())
}

/// A handle that a call returned.
fn handle(returned: &Returned) -> Handle {
    Handle::from_raw(returned.registers[0] as u32)
}

/// Closes a handle that must be there.
fn close(suite: &mut Suite, what: Syscall, handle: Handle) {
    let closed = syscall::handle_close(handle);
    suite.equal(what, "its handle can be closed", closed, Ok(()));
}
