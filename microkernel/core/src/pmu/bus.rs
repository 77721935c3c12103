//! How a CPU's performance monitor is reached: always by the CPU itself.

use super::msr::Msr;
use core::convert::Infallible;

/// Access to a register raised #GP: it is not there, or does not take the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneralProtection;

/// The monitor's registers of the CPU that runs this, and its local APIC's entry for them.
pub trait MonitorBus {
    /// What an access may fail with. It is [`Infallible`] where the proof has accessed the same registers
    /// before: in the sampling path, which must not fault.
    type Fault;

    /// Reads a register.
    ///
    /// # Errors
    /// The access faulted.
    fn read(&self, msr: Msr) -> Result<u64, Self::Fault>;
    /// Writes a register.
    ///
    /// # Errors
    /// The access faulted, and nothing is written.
    fn write(&self, msr: Msr, value: u64) -> Result<(), Self::Fault>;
    /// Lets an overflow interrupt this CPU as an NMI, or masks it. Where delivery has masked the entry, this unmasks it.
    fn deliver(&self, unmasked: bool);
}

/// A machine without a monitor: writes go nowhere, and nothing counts.
#[derive(Clone, Copy, Debug)]
pub struct NoMonitor;

impl MonitorBus for NoMonitor {
    type Fault = Infallible;

    fn read(&self, _: Msr) -> Result<u64, Infallible> {
        Ok(0)
    }
    fn write(&self, _: Msr, _: u64) -> Result<(), Infallible> {
        Ok(())
    }
    fn deliver(&self, _: bool) {}
}
