//! The counters of one CPU with their local vector, and the ways in which they lie.

use crate::amd::Amd;
use crate::intel::Intel;
use crate::msr;
use crate::setup::{Interface, Mode, Setup};

/// The access raises #GP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault;

/// What became of an interrupt of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is delivered, as an NMI.
    Nmi,
    /// It is lost: [`Mode::Dropping`]; or for now: [`Mode::Tardy`].
    Dropped,
    /// It is lost, since the local vector is masked or no NMI.
    Masked,
}

/// What happened while time passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// A counter overflowed that interrupts, and what became of that.
    pub overflow: Option<Delivery>,
    /// An interrupt came behind its time: [`Mode::Late`], [`Mode::Tardy`].
    pub late: bool,
}

impl Happened {
    /// Whether an NMI is delivered.
    #[must_use]
    pub const fn nmi(self) -> bool {
        self.late || matches!(self.overflow, Some(Delivery::Nmi))
    }
}

/// Of the local vector: masked, and the delivery mode (SDM, "Local Vector Table").
const MASKED: u32 = 1 << 16;
const DELIVERY: u32 = 0b111 << 8;
const DELIVER_NMI: u32 = 0b100 << 8;
/// Of the debug control register: the counters stop when one interrupts (SDM, "Freezing LBR and Performance Counters
/// on PMI").
const FREEZE_ON_PMI: u64 = 1 << 12;

#[derive(Debug)]
enum Counters {
    Intel(Intel),
    Amd(Amd),
}

/// The counters of one CPU.
#[derive(Debug)]
pub struct Pmu {
    counters: Counters,
    mode: Mode,
    /// The local vector of the counters.
    vector: u32,
    debug_control: u64,
    /// Interrupts that the local vector let through.
    interrupts: u64,
    /// Cycles until an interrupt comes behind its time, and from then on until it does so once more.
    late: Option<u64>,
    again: Option<u64>,
}

impl Pmu {
    /// Those of this CPU, as firmware may leave them.
    #[must_use]
    pub const fn new(setup: Setup, cpu: u8) -> Self {
        let (counters, debug_control) = match setup.interface {
            Interface::Intel => (Counters::Intel(Intel::new()), FREEZE_ON_PMI),
            Interface::Amd => (Counters::Amd(Amd::new(false)), 0),
            Interface::AmdV2 => (Counters::Amd(Amd::new(true)), 0),
        };
        Self {
            counters,
            mode: setup.mode_of(cpu),
            vector: MASKED,
            debug_control,
            interrupts: 0,
            late: None,
            again: None,
        }
    }

    /// Reads one of the registers in [`msr::COUNTERS`].
    ///
    /// # Errors
    /// There is no such register, or it faults.
    pub fn read(&self, register: u32) -> Result<u64, Fault> {
        if register == msr::DEBUG_CONTROL {
            return Ok(self.debug_control);
        }
        let value = match &self.counters {
            Counters::Intel(intel) => intel.read(register)?,
            Counters::Amd(amd) => amd.read(register)?,
        };
        match self.mode {
            Mode::Faulting => Err(Fault),
            Mode::Swallowing => Ok(0),
            Mode::Blank => Ok(match &self.counters {
                Counters::Intel(_) => Intel::blank(register, value),
                Counters::Amd(amd) => amd.blank(register, value),
            }),
            _ => Ok(value),
        }
    }

    /// Writes one.
    ///
    /// # Errors
    /// There is no such register, it cannot be written, the value has bits that are reserved, or it faults.
    pub fn write(&mut self, register: u32, value: u64) -> Result<(), Fault> {
        if register == msr::DEBUG_CONTROL {
            self.debug_control = value;
            return Ok(());
        }
        match self.mode {
            Mode::Faulting => return Err(Fault),
            Mode::Swallowing => return self.read(register).map(|_| ()),
            _ => {}
        }
        match &mut self.counters {
            Counters::Intel(intel) => intel.write(register, value),
            Counters::Amd(amd) => amd.write(register, value),
        }
    }

    /// The local vector of the counters.
    #[must_use]
    pub const fn vector(&self) -> u32 {
        self.vector
    }

    /// Sets it.
    pub const fn set_vector(&mut self, vector: u32) {
        self.vector = vector;
    }

    /// Time passed, in which the CPU ran or was halted. Told often enough: two overflows in it would be one.
    pub fn advance(&mut self, cycles: u64, halted: bool) -> Happened {
        let late = self.late.is_some_and(|left| left <= cycles);
        self.late = match self.late {
            Some(left) if left > cycles => Some(left - cycles),
            _ => self.again.take(),
        };
        let overflow = (!halted && self.count(cycles)).then(|| self.deliver());
        Happened { overflow, late }
    }

    /// Cycles after which [`Pmu::advance`] has something to tell.
    #[must_use]
    pub fn until_interrupt(&self, halted: bool) -> Option<u64> {
        let overflow = match &self.counters {
            Counters::Intel(intel) => intel.until_interrupt(),
            Counters::Amd(amd) => amd.until_interrupt(),
        };
        let overflow = match self.mode {
            Mode::Latched | Mode::Silent => None,
            Mode::Absurd => overflow.map(|cycles| cycles.div_ceil(Mode::ABSURD)),
            _ => overflow,
        };
        let overflow = overflow.filter(|_| !halted);
        [overflow, self.late].into_iter().flatten().min()
    }

    /// Whether a counter overflowed that interrupts then.
    fn count(&mut self, cycles: u64) -> bool {
        let cycles = match self.mode {
            Mode::Latched => return false,
            Mode::Absurd => cycles * Mode::ABSURD,
            _ => cycles,
        };
        let interrupts = match &mut self.counters {
            Counters::Intel(intel) => intel.advance(cycles),
            Counters::Amd(amd) => amd.advance(cycles),
        };
        interrupts && self.mode != Mode::Silent
    }

    fn deliver(&mut self) -> Delivery {
        if self.vector & MASKED != 0 || self.vector & DELIVERY != DELIVER_NMI {
            return Delivery::Masked;
        }
        self.interrupts += 1;
        let goes_wrong = self.interrupts.is_multiple_of(Mode::ONE_IN);
        match self.mode {
            Mode::Dropping if goes_wrong => return Delivery::Dropped,
            Mode::Late if goes_wrong => self.late = Some(Mode::LATE),
            Mode::Tardy if self.interrupts == 1 => {
                (self.late, self.again) = (Some(Mode::TARDY), Some(Mode::LATE));
                return Delivery::Dropped;
            }
            _ => {}
        }
        if let Counters::Intel(intel) = &mut self.counters {
            // An Intel APIC masks the vector (SDM, "Local Vector Table").
            self.vector |= MASKED;
            if self.debug_control & FREEZE_ON_PMI != 0 {
                intel.freeze();
            }
        }
        Delivery::Nmi
    }
}

#[cfg(test)]
mod tests;
