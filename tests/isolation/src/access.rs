//! One access to an address, in one instruction. RAX has the address, so the obituary says both what was tried and where it faulted.

use core::arch::asm;

/// Reads there.
pub fn read(at: u64) -> u64 {
    // SAFETY: the read faults; where the system is broken and it does not, it changes a register that is listed.
    unsafe { asm!("mov rcx, [rax]", in("rax") at, out("rcx") _, options(nostack)) }
    0
}

/// Writes there.
pub fn write(at: u64) -> u64 {
    // SAFETY: not sound where the system is broken, which is what is tried: then the judge sees that this program went on.
    unsafe { asm!("mov [rax], rax", in("rax") at, options(nostack)) }
    0
}

/// Goes on there.
pub fn execute(at: u64) -> u64 {
    // SAFETY: as for `write`: whatever is there, a system that is not broken does not execute it.
    unsafe { asm!("jmp rax", in("rax") at, options(noreturn)) }
}

/// Pushes for ever, on whatever stack this is.
pub fn overflow() -> ! {
    // SAFETY: the thread ends at the page below its stack, and what it overwrites until then is its own stack, to which it never returns.
    unsafe { asm!("2: push rax", "jmp 2b", options(noreturn)) }
}
