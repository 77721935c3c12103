//! A thread's first and last instructions.

use alloc::boxed::Box;
use core::arch::{asm, global_asm};

use ipc::abi::startup::ControlBlock;
use ipc::abi::{Error, Handle, Syscall};

use super::native::{EXIT_OFFSET, LEFT};
use crate::park::Reason;
use crate::{OwnedHandle, buffer, syscall};

/// What a new thread finds: the function to go on with, and what it does there. The stub below knows that the function is first.
#[repr(C)]
struct Start<F> {
    run: unsafe extern "C" fn(*mut Self) -> !,
    body: F,
}

/// Starts a thread on a stack that ends at `stack_end`.
///
/// # Errors
/// See the calls `thread_create` and `thread_start`. The body is dropped then.
///
/// # Safety
/// What `body` borrows outlives its use by the thread.
pub unsafe fn start<F: FnOnce() + Send>(
    stack_end: u64,
    control: &ControlBlock,
    buffer: Handle,
    body: F,
) -> Result<OwnedHandle, Error> {
    let start = Box::into_raw(Box::new(Start { run, body }));
    let entry = thread_start as *const () as u64;
    // SAFETY: `thread_start` is made to be entered like this: an argument that is a leaked `Start`, a stack and a buffer that
    // are mapped and nobody else's, and a control block that is written.
    let created = unsafe {
        syscall::thread_create(
            Handle::NONE,
            entry,
            stack_end,
            start as u64,
            control.this,
            buffer,
        )
    };
    let thread = created.map(OwnedHandle::new);
    let running = thread.and_then(|thread| syscall::thread_start(thread.raw()).map(|()| thread));
    if running.is_err() {
        // SAFETY: the pointer came from `into_raw` above, and the thread that would take it never ran.
        drop(unsafe { Box::from_raw(start) });
    }
    running
}

unsafe extern "C" {
    fn thread_start();
}

// Nobody called `run`, as nobody calls `main` (`entry`). The symbol is global because programs refer to it where their threads
// start. `run` is reached by its address, because there is one for each kind of body: the body becomes part of it, and a chain
// of calls has one frame, not four, before the thread's own work.
global_asm!(
    ".pushsection .text.thread_start,\"ax\",@progbits",
    ".global thread_start",
    ".type thread_start,@function",
    "thread_start:",
    ".cfi_startproc",
    ".cfi_undefined rip",
    "xor ebp, ebp",
    "and rsp, -16",
    "push rbp",
    "jmp qword ptr [rdi]",
    ".cfi_endproc",
    ".size thread_start, . - thread_start",
    ".popsection",
);

/// Runs a thread's body and ends the thread.
///
/// # Safety
/// `start` is a leaked box that nobody else takes.
unsafe extern "C" fn run<F: FnOnce()>(start: *mut Start<F>) -> ! {
    // SAFETY: the caller vouches for it.
    let start = *unsafe { Box::from_raw(start) };
    (start.body)();
    leave()
}

/// Ends the calling thread, whose stack and IPC buffer may be unmapped as soon as the exit word says so: from there on it uses
/// registers alone. Who waits is woken after that, and waits for this wake and nothing else, so its notification is there.
// Not `noreturn`, and inlined: the compiler inlines no body into a function that ends in a call of no return (see `exit`).
#[inline(always)]
fn leave() -> ! {
    let exit = buffer::address().wrapping_add(EXIT_OFFSET as usize);
    loop {
        // SAFETY: the exit word is in this thread's own page, which is mapped until the exchange. After it there is no access
        // to memory, and the thread never gets beyond `ud2`, so it is exchanged once.
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
                event = const Reason::Event as u64,
                signal = const Syscall::signal as u64,
                thread_exit = const Syscall::thread_exit as u64,
                inout("rdx") exit => _,
                inout("rax") u64::from(LEFT) => _,
                out("rdi") _,
                out("rsi") _,
                out("rcx") _,
                out("r11") _,
                options(nostack),
            );
        }
    }
}
