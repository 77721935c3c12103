//! What the cases of a call are tried with: one object of each type, with all rights, and two other processes, one of
//! which has ended.
//!
//! What cannot be made here ends the program: nothing that came after it would mean anything.

extern crate alloc;

use alloc::vec::Vec;
use core::fmt::Display;

use ipc::abi::startup::names;
use ipc::abi::{BY_MESSAGE, Error, Handle, NEVER, NOW, ObjectType, Rights, Tag};
use sysroot::syscall::message::{self, NO_WORDS};
use sysroot::thread::{self, JoinHandle};
use sysroot::{OwnedHandle, handle, record, startup, syscall, time};

/// Addresses in which nothing of this program lies.
pub const SCRATCH: u64 = 0x4000_0000_0000;
/// Priority of this program, as its entry gives it.
pub const PRIORITY: u64 = 10;
/// Pages of the memory objects.
pub const PAGES: u64 = 4;
/// Ports that harm nothing: those of the diagnostic display, and page registers of a DMA controller that nobody uses.
pub const PORTS: u64 = 0x80;
/// How many.
pub const PORT_COUNT: u64 = 4;
/// Registers of a timer, of which none is touched.
pub const DEVICE: u64 = 0xfed0_0000;
/// Code with which the process that has ended was killed.
pub const DEAD_CODE: u64 = 7;
/// Handles of a table.
pub const TABLE: usize = 1024;
/// Addresses of what is no device: RAM, and interrupt controllers.
pub const RAM: u64 = 0x10_0000;
pub const IO_APIC: u64 = 0xfec0_0000;
pub const LOCAL_APIC: u64 = 0xfee0_0000;
/// Quota of another process.
pub const QUOTA: u64 = 64;
/// The least that one can have.
pub const QUOTA_MIN: u64 = 8;
/// A handle that was never given out: its place is behind all that this program has.
pub const NEVER_ISSUED: Handle = Handle::new(900, 1);
/// How long another thread may take to get somewhere, in nanoseconds.
pub const PATIENCE: u64 = 60_000 * time::MILLISECOND;
/// Nanoseconds from one look for it to the next.
const LOOK: u64 = time::MILLISECOND / 10;

/// The objects.
pub struct World {
    /// The system, with every right but that to write to the log.
    pub system: Handle,
    /// The system, with that right.
    pub log: Handle,
    /// The profiling driver.
    pub profiler: Handle,
    /// A process without a thread that runs.
    pub child: OwnedHandle,
    /// A held thread of it.
    pub held: OwnedHandle,
    /// A process that has ended.
    pub dead: OwnedHandle,
    /// A thread of it.
    pub dead_thread: OwnedHandle,
    /// An endpoint at which nobody waits.
    pub endpoint: OwnedHandle,
    /// Another, for badges.
    pub minting: OwnedHandle,
    /// A notification.
    pub notification: OwnedHandle,
    /// Pages.
    pub memory: OwnedHandle,
    /// Pages in a row.
    pub run: OwnedHandle,
    /// Device memory.
    pub device: OwnedHandle,
    /// Ports.
    pub ports: OwnedHandle,
    /// A line that nothing signals.
    pub interrupt: OwnedHandle,
    /// A call that waits for its answer.
    pub reply: Option<OwnedHandle>,
    client: Option<JoinHandle<Result<(), Error>>>,
    /// Handles that are closed after each case.
    pub temporary: Vec<Handle>,
}

/// What was made, or the end of the program.
pub fn made<T>(what: impl Display, result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| panic!("{what} cannot be made: {error}"))
}

/// A handle that this program was given.
pub fn given(name: &str) -> Handle {
    made(name, startup::handle(name).ok_or(Error::NotFound))
}

/// A handle in its register form.
pub fn raw(handle: Handle) -> u64 {
    handle.raw().into()
}

fn owned(what: &str, result: Result<Handle, Error>) -> OwnedHandle {
    OwnedHandle::new(made(what, result))
}

/// Waits until something another thread does has happened; false if it does not.
pub fn until(mut happened: impl FnMut() -> bool) -> bool {
    let deadline = time::after(PATIENCE);
    while !happened() {
        if time::now() > deadline {
            return false;
        }
        time::sleep(LOOK);
    }
    true
}

/// A process of so many pages without threads.
pub fn process(quota: u64, notification: Handle, bits: u64) -> OwnedHandle {
    let system = given(names::SYSTEM);
    let process = syscall::process_create(system, quota, 0, notification, bits);
    owned("a process", process)
}

/// A held thread of another process, that has no code.
pub fn held_thread(process: &OwnedHandle, buffer: &OwnedHandle) -> OwnedHandle {
    // SAFETY: the process is not this one.
    let thread =
        unsafe { syscall::thread_create(process.raw(), SCRATCH, SCRATCH, 0, 0, buffer.raw()) };
    owned("a thread", thread)
}

impl World {
    /// Makes everything.
    pub fn new() -> Self {
        let system = given(names::SYSTEM);
        let notification = owned("a notification", syscall::notification_create());
        let memory = owned("memory", syscall::memory_create(Handle::NONE, PAGES, 0));
        let run = owned("a run", syscall::memory_create(Handle::NONE, PAGES, 1));
        let child = process(QUOTA, notification.raw(), 0);
        let dead = process(QUOTA, notification.raw(), 0);
        let held = held_thread(&child, &memory);
        let dead_thread = held_thread(&dead, &memory);
        made("an end", syscall::process_kill(dead.raw(), DEAD_CODE));
        let ended = || record::process_status(dead.raw()).is_ok_and(|status| status.reclaimed == 1);
        assert!(until(ended), "a process does not end");
        let interrupt = syscall::interrupt_create(system, BY_MESSAGE, notification.raw(), 1);
        let (reply, client) = parked();
        Self {
            system,
            log: given(names::LOG),
            profiler: given(names::PROFILER),
            child,
            held,
            dead,
            dead_thread,
            endpoint: owned("an endpoint", syscall::endpoint_create()),
            minting: owned("an endpoint", syscall::endpoint_create()),
            memory,
            run,
            device: owned("a device", syscall::memory_physical(system, DEVICE, 1)),
            ports: owned("ports", syscall::ports_create(system, PORTS, PORT_COUNT)),
            interrupt: owned("an interrupt", interrupt.map(|(line, _, _)| line)),
            notification,
            reply: Some(reply),
            client: Some(client),
            temporary: Vec::new(),
        }
    }

    /// A handle to an object of each type, with as many rights as there are.
    pub fn each(&self) -> [(ObjectType, Handle); 10] {
        let reply = self.reply.as_ref().map_or(Handle::NONE, OwnedHandle::raw);
        [
            (ObjectType::Process, self.child.raw()),
            (ObjectType::Thread, self.held.raw()),
            (ObjectType::Endpoint, self.endpoint.raw()),
            (ObjectType::Notification, self.notification.raw()),
            (ObjectType::Memory, self.memory.raw()),
            (ObjectType::Ports, self.ports.raw()),
            (ObjectType::Interrupt, self.interrupt.raw()),
            (ObjectType::Reply, reply),
            (ObjectType::Profiler, self.profiler),
            (ObjectType::System, self.system),
        ]
    }

    /// Another handle like this one, closed after the case.
    pub fn copy(&mut self, of: Handle, rights: Rights) -> Handle {
        let copy = made("a copy", syscall::handle_duplicate(of, rights));
        self.temporary.push(copy);
        copy
    }

    /// Closes what was made for a case.
    pub fn tidy(&mut self) {
        for handle in self.temporary.drain(..) {
            // The case may have used it up.
            let _ = syscall::handle_close(handle);
        }
        // Bits that a case has set.
        let _ = syscall::wait(self.notification.raw(), NOW);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.tidy();
        self.reply = None;
        if let Some(client) = self.client.take() {
            let failed = made("the end of a client", client.join());
            assert_eq!(
                failed,
                Err(Error::PeerDied),
                "a call whose reply was closed"
            );
        }
        // It has no thread that could end it.
        let _ = syscall::process_kill(self.child.raw(), 0);
    }
}

/// A call that was received and set aside, and the thread that made it.
pub fn parked() -> (OwnedHandle, JoinHandle<Result<(), Error>>) {
    let endpoint = owned("an endpoint", syscall::endpoint_create());
    let theirs = made("a copy", handle::duplicate(endpoint.raw(), Rights::CALL));
    let client = made(
        "a client",
        thread::spawn(move || {
            message::call(theirs.raw(), Tag::default(), NO_WORDS, NEVER).map(|_| ())
        }),
    );
    made("a call", message::receive(endpoint.raw(), NEVER));
    (owned("a reply", syscall::reply_park()), client)
}
