//! Where the kernel's code and stacks are, as the linker and the boot code laid them out.

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
}

impl Span {
    /// No address at all.
    pub const EMPTY: Self = Self { start: 0, end: 0 };

    /// Whether an address lies in it.
    #[must_use]
    #[inline]
    pub const fn contains(&self, at: u64) -> bool {
        self.start <= at && at < self.end
    }
    /// Whether the `bytes` bytes from an address all lie in it.
    #[must_use]
    #[inline]
    pub const fn holds(&self, at: u64, bytes: u64) -> bool {
        match at.checked_add(bytes) {
            Some(end) => self.start <= at && end <= self.end,
            None => false,
        }
    }
}

/// The kernel's code.
#[derive(Clone, Copy, Debug)]
pub struct KernelMap {
    /// Its text: every return address on a kernel stack lies here.
    pub text: Span,
    /// The entry and exit stubs, by their linker symbols. While RIP or a return address is in one of these, RBP may be the
    /// program's, and the program's registers are where the stub saves them to or restores them from.
    pub stubs: &'static [Span],
    /// Of the stubs, the first instructions of SYSCALL's: up to the one after which the thread's registers are saved and RBP is the
    /// kernel's.
    pub syscall: Span,
    /// Of those, the first one that runs with RSP no longer the program's.
    pub syscall_switched: u64,
    /// Of the stubs, those of exceptions and interrupts, up to the same point. The hardware has saved RIP and RSP there already.
    pub interrupts: Span,
}

impl KernelMap {
    /// Whether an address lies in an entry or exit stub.
    #[must_use]
    #[inline]
    pub fn in_stub(&self, address: u64) -> bool {
        self.stubs.iter().any(|stub| stub.contains(address))
    }
}
