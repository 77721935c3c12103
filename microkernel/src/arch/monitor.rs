//! The performance monitor of the CPU that runs this: as the sampling path reaches it, and as the proof does.

use super::machine::Machine;
use super::{cpu, probe};
use core::convert::Infallible;
use kcore::base::cpu::CpuId;
use kcore::kernel::Kernel;
use kcore::pmu::{Bench, GeneralProtection, MonitorBus, Msr};
use kcore::profile::{Expected, Purpose};
use x86_64::registers::model_specific::Msr as Raw;

/// For registers that have answered in the proof.
impl MonitorBus for Machine {
    type Fault = Infallible;

    #[inline]
    fn read(&self, msr: Msr) -> Result<u64, Infallible> {
        // SAFETY: an `Msr` is a register of the performance monitor; the proof has read it on this CPU.
        Ok(unsafe { Raw::new(msr.number()).read() })
    }
    #[inline]
    fn write(&self, msr: Msr, value: u64) -> Result<(), Infallible> {
        // SAFETY: as above. Whatever is written, it touches no memory; and the interrupts that it may cause are counted on.
        unsafe { Raw::new(msr.number()).write(value) };
        Ok(())
    }
    #[inline]
    fn deliver(&self, unmasked: bool) {
        self.local.counters(unmasked);
    }
}

/// The monitor while it is not known what of it is there.
#[derive(Clone, Copy)]
pub struct Probe<'a> {
    kernel: &'a Kernel<Machine>,
    machine: &'a Machine,
    expected: &'a Expected,
    cpu: CpuId,
}

impl<'a> Probe<'a> {
    /// On the CPU that runs this; `None` if it takes no part in profiles.
    pub fn new(kernel: &'a Kernel<Machine>, machine: &'a Machine, cpu: CpuId) -> Option<Self> {
        Some(Self {
            kernel,
            machine,
            expected: kernel.profiler.expected(cpu)?,
            cpu,
        })
    }
}

impl MonitorBus for Probe<'_> {
    type Fault = GeneralProtection;

    fn read(&self, msr: Msr) -> Result<u64, GeneralProtection> {
        probe::read(msr)
    }
    fn write(&self, msr: Msr, value: u64) -> Result<(), GeneralProtection> {
        probe::write(msr, value)
    }
    fn deliver(&self, unmasked: bool) {
        // Without an entry nothing interrupts, and that is found out.
        if self.machine.local.has_counters() {
            self.machine.local.counters(unmasked);
        }
    }
}

impl Bench for Probe<'_> {
    fn tsc(&self) -> u64 {
        cpu::tsc()
    }
    fn expect(&self) -> bool {
        let is_first = self.expected.announce(Purpose::Proof);
        if is_first {
            self.kernel.profiler.owed(self.cpu);
        }
        is_first
    }
    fn has_arrived(&self) -> bool {
        !self.expected.is_pending()
    }
    fn give_up(&self) {
        // One that comes between these two is claimed twice over; that is no harm.
        self.kernel.profiler.owed(self.cpu);
        let _ = self.expected.claim();
    }
}
