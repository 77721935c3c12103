//! Which CPU runs this code. A `&Cpu` is passed to everything that locks or touches per-CPU state: it proves that the
//! caller runs on that CPU with interrupts off, and it carries the ranks of the locks held there.

use core::sync::atomic::{AtomicU32, Ordering};

/// Most CPUs the kernel runs; masks of CPUs are 64-bit words.
pub const CPUS_MAX: usize = 64;

/// A CPU, as the kernel numbers them: the boot CPU is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CpuId(pub u8);

impl CpuId {
    /// As an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// As a bit of a mask of CPUs.
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self.0
    }
}

/// The CPU that runs this code.
#[derive(Debug)]
pub struct Cpu {
    id: CpuId,
    /// Bit per rank held; only this CPU touches it, so relaxed loads and stores do.
    held: AtomicU32,
}

impl Cpu {
    /// The token of a CPU. The kernel makes one for each and lends it only to code on that CPU.
    #[must_use]
    pub const fn new(id: CpuId) -> Self {
        Self {
            id,
            held: AtomicU32::new(0),
        }
    }
    /// Its number.
    #[must_use]
    pub const fn id(&self) -> CpuId {
        self.id
    }

    pub(super) fn enter_rank(&self, rank: u8) {
        let held = self.held.load(Ordering::Relaxed);
        assert!(
            held >> rank == 0,
            "lock order: rank {rank} taken while holding ranks {held:#b}"
        );
        self.held.store(held | 1 << rank, Ordering::Relaxed);
    }
    pub(super) fn leave_rank(&self, rank: u8) {
        self.held.store(
            self.held.load(Ordering::Relaxed) & !(1 << rank),
            Ordering::Relaxed,
        );
    }
    /// Whether this CPU holds no lock, as it must when it leaves the kernel.
    #[must_use]
    pub fn holds_nothing(&self) -> bool {
        self.held.load(Ordering::Relaxed) == 0
    }
}
