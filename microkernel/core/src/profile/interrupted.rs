//! What a sample interrupts, as the hardware pushed it. The entry stubs fill this in; nothing here is a guess from
//! inside the handler.

/// Bit of RFLAGS: interrupts on (Intel SDM volume 1, section 3.4.3).
const RFLAGS_IF: u64 = 1 << 9;

/// What is interrupted, as far as a usual sample needs it; the whole of it can be had.
pub trait Context: Copy {
    /// See [`Interrupted::rip`].
    fn rip(self) -> u64;
    /// See [`Interrupted::rsp`].
    fn rsp(self) -> u64;
    /// See [`Interrupted::rbp`].
    fn rbp(self) -> u64;
    /// See [`Interrupted::user`].
    fn is_user(self) -> bool;
    /// See [`Interrupted::interrupts_off`].
    fn interrupts_off(self) -> bool;
    /// All that there is.
    fn whole(self) -> Interrupted;
}

impl Context for &Interrupted {
    fn rip(self) -> u64 {
        self.rip
    }
    fn rsp(self) -> u64 {
        self.rsp
    }
    fn rbp(self) -> u64 {
        self.rbp
    }
    fn is_user(self) -> bool {
        self.user
    }
    fn interrupts_off(self) -> bool {
        Interrupted::interrupts_off(self)
    }
    fn whole(self) -> Interrupted {
        *self
    }
}

/// The context that a tick or an NMI interrupted on this CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// RIP as the hardware pushed it.
    pub rip: u64,
    /// RSP as the hardware pushed it.
    pub rsp: u64,
    /// RBP at the interruption; whose it is, the walk decides from `rip`.
    pub rbp: u64,
    /// RFLAGS as the hardware pushed them.
    pub rflags: u64,
    /// RCX at the interruption: where a program that enters by SYSCALL goes on, while the stub has not saved it.
    pub rcx: u64,
    /// Where the stub of SYSCALL puts the program's RSP while it changes stacks.
    pub scratch: u64,
    /// Where the registers end of the thread from which the kernel was entered; 0 if it was entered from idle.
    pub entered: u64,
    /// The pushed code segment was a user segment.
    pub user: bool,
    /// The CPU was in its idle loop, with no current thread.
    pub idle: bool,
}

impl Interrupted {
    /// Whether the interrupted code had interrupts off.
    #[must_use]
    #[inline]
    pub const fn interrupts_off(&self) -> bool {
        interrupts_off(self.rflags)
    }
}

/// Whether interrupts are off by these RFLAGS.
#[must_use]
#[inline]
pub const fn interrupts_off(rflags: u64) -> bool {
    rflags & RFLAGS_IF == 0
}
