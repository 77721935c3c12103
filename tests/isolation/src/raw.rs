//! A system call by number and registers: what a program that means harm can do. `sysroot` has the typed calls, which pass no argument
//! that is none.

use core::arch::asm;

/// RDI, RSI, RDX, R10, R8, R9.
pub type Arguments = [u64; 6];

/// Makes a call that fails, or whose success this program does not rely on; gives RAX and then the six registers afterwards.
///
/// # Safety
/// If the call succeeds, it takes away no memory that this program relies on, and puts no thread into its code.
pub unsafe fn enter(number: u64, arguments: Arguments) -> [u64; 9] {
    let [a, b, c, d, e, f] = arguments;
    let status;
    let (s, t, u, v, w, x);
    let (rcx, r11);
    // SAFETY: the instruction changes no register but those listed (ipc::abi::syscall), and writes to no memory but the IPC buffer,
    // of which no reference is kept; for what else a call changes, the caller answers.
    unsafe {
        asm!(
            "syscall",
            inout("rax") number => status,
            inout("rdi") a => s,
            inout("rsi") b => t,
            inout("rdx") c => u,
            inout("r10") d => v,
            inout("r8") e => w,
            inout("r9") f => x,
            out("rcx") rcx,
            out("r11") r11,
            options(nostack),
        );
    }
    [status, s, t, u, v, w, x, rcx, r11]
}
