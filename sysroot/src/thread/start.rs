//! A thread's first and last instructions.

use alloc::boxed::Box;
use core::arch::{asm, global_asm};

use ipc::abi::startup::ControlBlock;
use ipc::abi::{Error, Handle, Syscall};

use super::native::{EXIT_OFFSET, LEFT};
use crate::park::Reason;
use crate::{OwnedHandle, buffer, syscall};

/// What a thread does.
pub type Body = Box<dyn FnOnce() + Send>;

/// Starts a thread on a stack that ends at `stack_end`.
///
/// # Errors
/// See the calls `thread_create` and `thread_start`. The body is dropped then.
pub fn start(
    stack_end: u64,
    control: &ControlBlock,
    buffer: Handle,
    body: Body,
) -> Result<OwnedHandle, Error> {
    let argument = Box::into_raw(Box::new(body));
    let entry = thread_start as *const () as u64;
    // SAFETY: `thread_start` is made to be entered like this: an argument that is a leaked `Body`, a stack and a buffer that
    // are mapped and nobody else's, and a control block that is written.
    let created = unsafe {
        syscall::thread_create(
            Handle::NONE,
            entry,
            stack_end,
            argument as u64,
            control.this,
            buffer,
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
    let body: Body = *unsafe { Box::from_raw(body) };
    body();
    leave()
}

/// Ends the calling thread, whose stack and IPC buffer may be unmapped as soon as the exit word says so: from there on it uses
/// registers alone. Who waits is woken after that, and waits for this wake and nothing else, so its notification is there.
fn leave() -> ! {
    let exit = buffer::address().wrapping_add(EXIT_OFFSET as usize);
    // SAFETY: the exit word is in this thread's own page, which is mapped until the exchange. After it there is no access to
    // memory, and the thread never returns.
    unsafe {
        asm!(
            "xchg dword ptr [rdx], eax",
            "test eax, eax",
            "jz 2f",
            "mov edi, eax",
            "mov esi, {event}",
            "mov eax, {signal}",
            "syscall",
            "2:",
            "mov eax, {thread_exit}",
            "syscall",
            "ud2",
            in("rdx") exit,
            in("rax") u64::from(LEFT),
            event = const Reason::Event as u64,
            signal = const Syscall::signal as u64,
            thread_exit = const Syscall::thread_exit as u64,
            options(noreturn, nostack),
        )
    }
}
