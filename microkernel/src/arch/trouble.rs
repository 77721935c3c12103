//! Failures that only unsafe code can have, for tests of what is said about them.

use core::arch::asm;

/// Reads an address that is not mapped.
#[inline(never)]
pub fn fault() {
    const NOWHERE: *const u64 = 0xffff_a000_0000_0000 as *const u64;
    // SAFETY: it is not sound, and is asked for by name on the command line: the page fault ends the machine.
    let _ = unsafe { NOWHERE.read_volatile() };
}

/// Uses up the stack.
#[inline(never)]
pub fn overflow() {
    // SAFETY: pushes until the guard page below the stack is hit, which ends the machine; asked for by name, as above.
    unsafe { asm!("2: push rax", "jmp 2b", options(noreturn)) }
}
