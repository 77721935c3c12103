//! Threads: each has a stack with an unmapped page below it, and an IPC buffer above it.
//!
//! One range of addresses holds them: guard page, stack, IPC buffer. The thread's control block is in the buffer's page
//! (`ipc::abi::startup`), written before the thread exists.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::arch::global_asm;

use ipc::abi::info::ThreadState;
use ipc::abi::layout::PAGE_SIZE;
use ipc::abi::startup::{CONTROL_OFFSET, ControlBlock};
use ipc::abi::{Error, Handle, NEVER, Rights};

use crate::{Mutex, OwnedHandle, mapping, syscall, time};

/// Stack of a thread that asks for no other, in bytes.
pub const STACK_BYTES: u64 = 64 * 1024;

/// How often `join` looks whether a thread that announced its end has left its stack, in nanoseconds. The kernel signals the
/// end of a process, not of a thread; from the announcement it is a few instructions to the end, so one look mostly does.
const LEAVING: u64 = 50_000;

type Body = Box<dyn FnOnce() + Send>;

/// Where a thread leaves its result, and how it says so.
struct Packet<T> {
    result: Mutex<Option<T>>,
    done: OwnedHandle,
}

/// A thread that was started. Dropped without `join`, the thread goes on, and its stack stays until the program ends.
pub struct JoinHandle<T> {
    thread: OwnedHandle,
    packet: Arc<Packet<T>>,
    place: u64,
    stack_pages: u64,
}

/// Starts a thread with a stack of [`STACK_BYTES`].
///
/// # Errors
/// No memory, or no room for another thread.
pub fn spawn<T, F>(body: F) -> Result<JoinHandle<T>, Error>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    spawn_with(STACK_BYTES, body)
}

/// Starts a thread with a stack of at least `stack_bytes` bytes.
///
/// # Errors
/// No memory, or no room for another thread.
pub fn spawn_with<T, F>(stack_bytes: u64, body: F) -> Result<JoinHandle<T>, Error>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let packet = Arc::new(Packet {
        result: Mutex::new(None),
        done: OwnedHandle::new(syscall::notification_create()?),
    });
    let theirs = Arc::clone(&packet);
    let body: Body = Box::new(move || {
        let result = body();
        *theirs.result.lock() = Some(result);
        // The notification is as old as the packet, so the handle is good.
        let _ = syscall::signal(theirs.done.raw(), 1);
    });

    let stack_pages = stack_bytes.div_ceil(PAGE_SIZE).max(1);
    let place = mapping::reserve(stack_pages + 2)?;
    let stack = Area::map(place + PAGE_SIZE, stack_pages);
    let started = stack.and_then(|stack| {
        let buffer = Area::map(stack.end(), 1)?;
        let thread = start(&stack, &buffer, body)?;
        // From here on the running thread uses both; `join` unmaps them.
        core::mem::forget((stack.mapped, buffer.mapped));
        Ok(thread)
    });
    match started {
        Ok(thread) => Ok(JoinHandle {
            thread,
            packet,
            place,
            stack_pages,
        }),
        Err(error) => {
            mapping::release(place);
            Err(error)
        }
    }
}

/// Fresh memory at a fixed place; unmapped when `mapped` is dropped.
struct Area {
    memory: OwnedHandle,
    mapped: Mapped,
}

struct Mapped {
    address: u64,
    pages: u64,
}

impl Area {
    fn map(address: u64, pages: u64) -> Result<Self, Error> {
        let memory = OwnedHandle::new(syscall::memory_create(Handle::NONE, pages, 0)?);
        let rights = Rights::READ | Rights::WRITE;
        // SAFETY: the caller reserved the addresses, so no code relies on what is there.
        unsafe { syscall::map(Handle::NONE, memory.raw(), address, 0, pages, rights) }?;
        let mapped = Mapped { address, pages };
        Ok(Self { memory, mapped })
    }
    const fn end(&self) -> u64 {
        self.mapped.address + self.mapped.pages * PAGE_SIZE
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: no thread runs on this memory: either it was never started, or it is dead.
        let _ = unsafe { syscall::unmap(Handle::NONE, self.address, self.pages) };
    }
}

fn start(stack: &Area, buffer: &Area, body: Body) -> Result<OwnedHandle, Error> {
    let control = ControlBlock::new(buffer.mapped.address);
    let place = (buffer.mapped.address + CONTROL_OFFSET) as *mut ControlBlock;
    // SAFETY: the page was just mapped for writing, the offset is inside it and aligned, and no thread uses it yet.
    unsafe { place.write(control) };
    let argument = Box::into_raw(Box::new(body));
    let entry = thread_start as *const () as u64;
    // SAFETY: `thread_start` is made to be entered like this: an argument that is a leaked `Body`, a stack and a buffer that
    // are mapped and nobody else's, and a control block that is written.
    let created = unsafe {
        syscall::thread_create(
            Handle::NONE,
            entry,
            stack.end(),
            argument as u64,
            control.this,
            buffer.memory.raw(),
        )
    };
    let thread = created.map(OwnedHandle::new);
    let running = thread.and_then(|thread| syscall::thread_start(thread.raw()).map(|()| thread));
    if running.is_err() {
        // SAFETY: the pointer came from `into_raw` above, and the thread that would take it never ran.
        drop(unsafe { Box::from_raw(argument) });
    }
    running
}

impl<T> JoinHandle<T> {
    /// The thread, to set its priority or look at its state.
    #[must_use]
    pub const fn thread(&self) -> Handle {
        self.thread.raw()
    }

    /// Waits until the thread has ended, and gives what it returned.
    ///
    /// # Errors
    /// The kernel's; the thread then goes on.
    pub fn join(self) -> Result<T, Error> {
        let dead = |state| state == ThreadState::Dead as u64;
        syscall::wait(self.packet.done.raw(), NEVER)?;
        // It still runs its last instructions on its stack.
        while !dead(syscall::thread_info(self.thread.raw())?.1) {
            time::sleep(LEAVING);
        }
        let stack = self.place + PAGE_SIZE;
        drop(Mapped {
            address: stack,
            pages: self.stack_pages,
        });
        drop(Mapped {
            address: stack + self.stack_pages * PAGE_SIZE,
            pages: 1,
        });
        mapping::release(self.place);
        let result = self.packet.result.lock().take();
        // The thread signals after it has left its result, and a panic ends the whole program.
        result.ok_or(Error::PeerDied)
    }
}

unsafe extern "C" {
    fn thread_start();
}

// Nobody called `run`, as nobody calls `main` (`entry`).
global_asm!(
    ".pushsection .text.thread_start,\"ax\",@progbits",
    ".type thread_start,@function",
    "thread_start:",
    ".cfi_startproc",
    ".cfi_undefined rip",
    "xor ebp, ebp",
    "and rsp, -16",
    "push rbp",
    "jmp {run}",
    ".cfi_endproc",
    ".size thread_start, . - thread_start",
    ".popsection",
    run = sym run,
);

/// Runs a thread's body and ends the thread.
extern "C" fn run(body: *mut Body) -> ! {
    // SAFETY: `start` leaked the box for this thread alone.
    let body = unsafe { Box::from_raw(body) };
    body();
    loop {
        // The call does not return; if it did, there would be nothing better to do than to try again.
        let _ = syscall::thread_exit();
    }
}
