//! A system call by number and registers: what a program that is wrong, or means harm, can do.
//!
//! `sysroot` has the typed calls, which cannot pass an argument that is none. Here everything goes as it is.

use core::arch::asm;

/// Argument registers: `rdi`, `rsi`, `rdx`, `r10`, `r8`, `r9`, and `r12`, which only a message has.
pub type Registers = [u64; 7];

/// The registers after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// `rax`: 0, or an error.
    pub status: u64,
    /// All that can carry a result, in the order of [`Registers`].
    pub registers: Registers,
}

impl Returned {
    /// The registers that results come in.
    pub const fn results(&self) -> [u64; 3] {
        let [a, b, c, ..] = self.registers;
        [a, b, c]
    }
}

/// Makes a call.
///
/// # Safety
/// If the call succeeds, it takes no memory away, and puts no thread into code, that this program relies on. The calls of this
/// program keep to that by naming only objects that were made for the purpose, and addresses in
/// [`SCRATCH`](crate::world::SCRATCH) or in other processes.
pub unsafe fn enter(number: u64, arguments: Registers) -> Returned {
    let [a, b, c, d, e, f, g] = arguments;
    let status;
    let (s, t, u, v, w, x, y);
    // SAFETY: the instruction changes no register but those listed (ipc::abi::syscall), and writes to no memory but the IPC
    // buffer, of which no reference is kept; for what else a call changes, the caller answers.
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
            inout("r12") g => y,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    Returned {
        status,
        registers: [s, t, u, v, w, x, y],
    }
}

/// Makes a call with three arguments, and says whether the registers that carry nothing were kept.
///
/// # Safety
/// As [`enter`].
pub unsafe fn keeps(number: u64, arguments: [u64; 3]) -> bool {
    const MARK: u64 = 0x5eed_0000_0000_0100;
    let [a, b, c] = arguments;
    let (bx, bp): (u64, u64);
    let (r13, r14, r15): (u64, u64, u64);
    // SAFETY: as in `enter`; RBX and RBP, which cannot be named as operands, are put back, and the stack is as it was.
    unsafe {
        asm!(
            "push rbx",
            "push rbp",
            "lea rbx, [r13 + 1]",
            "lea rbp, [r13 + 2]",
            "syscall",
            "mov rdi, rbx",
            "mov rsi, rbp",
            "pop rbp",
            "pop rbx",
            inout("rax") number => _,
            inout("rdi") a => bx,
            inout("rsi") b => bp,
            inout("rdx") c => _,
            inout("r10") 0_u64 => _,
            inout("r8") 0_u64 => _,
            inout("r9") 0_u64 => _,
            inout("r12") 0_u64 => _,
            inout("r13") MARK => r13,
            inout("r14") MARK + 3 => r14,
            inout("r15") MARK + 4 => r15,
            out("rcx") _,
            out("r11") _,
        );
    }
    [bx, bp, r13, r14, r15] == [MARK + 1, MARK + 2, MARK, MARK + 3, MARK + 4]
}
