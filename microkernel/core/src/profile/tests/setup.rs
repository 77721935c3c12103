//! What tests of the driver begin with: CPUs with a ring each, and one program that is interrupted. Everything lives for ever, as it does
//! in the kernel.

use super::fake::{Fake, FakeThread, FakeThreads};
use crate::base::cpu::CpuId;
use crate::profile::cpu::CpuState;
use crate::profile::{Interrupted, KernelMap, Span};
use sample_ring::{AtomicU64, Geometry, Reader, Writer};

/// Few enough records that rings overflow, and a quarter of them is two.
const RING: Geometry = Geometry::new(16, 8).unwrap();
/// A kernel that is never interrupted.
pub const MAP: KernelMap = KernelMap {
    text: Span::EMPTY,
    stubs: &[],
    syscall: Span::EMPTY,
    syscall_switched: 0,
    interrupts: Span::EMPTY,
};
/// What is interrupted.
pub const USER: Interrupted = Interrupted {
    rip: 0x40_0000,
    rsp: 0x7000,
    rbp: 0,
    rflags: 0x202,
    rcx: 0,
    scratch: 0,
    entered: 0,
    user: true,
    idle: false,
};

pub fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// CPUs, and a reader of each one's ring.
pub fn cpus(count: usize) -> (&'static [CpuState], Vec<Reader<'static>>) {
    let cpu = |id| {
        let words = leak(
            (0..RING.words())
                .map(|_| AtomicU64::new(0))
                .collect::<Vec<_>>(),
        );
        let ring = Writer::format(words, RING).unwrap();
        let reader = Reader::open(words[..].into(), RING).unwrap();
        (CpuState::new(CpuId(id as u8), ring), reader)
    };
    let (states, readers): (Vec<_>, _) = (0..count).map(cpu).unzip();
    (states.leak(), readers)
}

/// A machine, and the thread that runs on it.
pub fn machine() -> (&'static Fake, FakeThreads<'static>) {
    let mut fake = Fake::new();
    let root = fake.frame(1);
    let machine = leak(fake);
    let thread = FakeThread::new(root, [USER.rip, USER.rsp, USER.rbp]);
    (machine, FakeThreads::new(machine, vec![thread]))
}
