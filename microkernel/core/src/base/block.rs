//! Where the words of a CPU's block lie that are looked at from outside the kernel, in bytes from its start: a debugger, or a test that
//! stops the machine, finds there who was entered from. The kernel's build holds the block to this.

/// Where the word is that says where the registers end of the thread that left the kernel last.
pub const REGS_END: usize = 8;
/// Where the stub of SYSCALL puts the program's RSP.
pub const SCRATCH: usize = 16;
/// Where the word is that says where the kernel's stack ends.
pub const STACK_TOP: usize = 24;
