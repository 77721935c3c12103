//! A thread's registers while it is not running, where the entry stubs put them.
//!
//! The stubs save straight into this structure (the task state segment's RSP0 points at its end, so that the CPU pushes the
//! interrupt frame here too) and restore from it; there is no copy on a kernel stack. The words are atomic because
//! the sampling path of another CPU may look at a blocked thread's registers at any time; relaxed loads and stores are plain moves.

use core::sync::atomic::{AtomicU64, Ordering};

/// A register's place in [`SavedRegs`]; the order is the order in which the stubs push, lowest address first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
#[expect(missing_docs, reason = "registers are named as in the manual")]
pub enum Reg {
    R15,
    R14,
    R13,
    R12,
    R11,
    R10,
    R9,
    R8,
    Rdi,
    Rsi,
    Rbp,
    Rbx,
    Rdx,
    Rcx,
    Rax,
    /// Vector of the entry; [`VECTOR_SYSCALL`] for a system call.
    Vector,
    /// Hardware error code, or 0.
    Error,
    Rip,
    Cs,
    Rflags,
    Rsp,
    Ss,
}

/// Words in [`SavedRegs`].
pub const REGS: usize = Reg::Ss as usize + 1;
/// In [`Reg::Vector`]: the thread entered by SYSCALL, and RCX and R11 hold nothing to keep.
pub const VECTOR_SYSCALL: u64 = 0x100;

/// Selectors of user segments, with their privilege level; the GDT and the STAR register must agree.
pub const USER_CS: u64 = 0x23;
/// See [`USER_CS`].
pub const USER_SS: u64 = 0x1b;
/// Flags a thread starts with: interrupts on.
pub const USER_RFLAGS: u64 = 0x202;

/// A thread's saved registers. Aligned so that its end is a valid RSP0.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct SavedRegs([AtomicU64; REGS]);

const _: () =
    assert!(size_of::<SavedRegs>().is_multiple_of(16) && size_of::<SavedRegs>() == REGS * 8);

impl SavedRegs {
    /// All zero.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; REGS])
    }
    /// The address behind them, from which an entry into the kernel pushes.
    #[must_use]
    #[inline]
    pub fn end(&self) -> u64 {
        core::ptr::from_ref(self).addr() as u64 + size_of::<Self>() as u64
    }
    /// Reads one.
    #[must_use]
    #[inline]
    pub fn get(&self, reg: Reg) -> u64 {
        self.0[reg as usize].load(Ordering::Relaxed)
    }
    /// Writes one.
    pub fn set(&self, reg: Reg, value: u64) {
        self.0[reg as usize].store(value, Ordering::Relaxed);
    }
    /// Puts a new thread's registers in place: everything else is zero.
    pub fn start(&self, rip: u64, rsp: u64, argument: u64) {
        for word in &self.0 {
            word.store(0, Ordering::Relaxed);
        }
        self.set(Reg::Rip, rip);
        self.set(Reg::Rsp, rsp);
        self.set(Reg::Rdi, argument);
        self.set(Reg::Cs, USER_CS);
        self.set(Reg::Ss, USER_SS);
        self.set(Reg::Rflags, USER_RFLAGS);
    }
}

impl Default for SavedRegs {
    fn default() -> Self {
        Self::new()
    }
}
