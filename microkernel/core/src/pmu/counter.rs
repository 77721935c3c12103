//! One counter: its plan of registers, and the order in which they are accessed.
//!
//! # Why this order
//! - **Nothing counts while the interrupt is handled**, where there is a global control: it is cleared first and set last. So no
//!   overflow falls between the look at the status and the reload, and the handler's own cycles are nobody's.
//! - **The status is acknowledged before the counter is reloaded.** The other way round, an overflow between the two would be
//!   acknowledged unseen, and there would never be an interrupt again.
//! - **The APIC's entry is unmasked before counting goes on.** It masks itself when it delivers (SDM volume 3A, "Local Vector
//!   Table"); an overflow while it is masked interrupts nobody.
//! - **Only this counter's status bit is looked at**: firmware, or another unit, may leave others set.
//! - **What has frozen the counters is acknowledged with them** (SDM, "Architectural Performance Monitoring Version 4", CTR_FRZ;
//!   PPR, MSRC000_0300, PMCF): while firmware, or the kernel before this one, has left that bit set, nothing counts.
//! - **The count is written before what enables it**, the event's register next, the global control last: a hypervisor sets its own
//!   counter up when it sees one enabled, from the count that it has then.
//! - **Without a global control**, as in AMD's first version, the counter is its own status: it runs from below zero, and its sign
//!   bit goes clear at the overflow (APM volume 2, "Performance Monitoring Counters"). It goes on from there, and cannot overflow again before all of its bits
//!   went round. So the reload is the acknowledgement, and nothing needs to be stopped.

use super::bus::MonitorBus;
use super::claims::Claims;
use super::msr::{AMD_COUNTERS_MAX, Msr};

/// Of the registers that select an event (SDM, "Architectural Performance Monitoring Version 1"; APM volume 2,
/// "Performance Monitoring Counters"; at the same places).
const USER: u64 = 1 << 16;
const KERNEL: u64 = 1 << 17;
const INTERRUPT: u64 = 1 << 20;
const ENABLE: u64 = 1 << 22;
/// Of a fixed counter's four bits: in the kernel, in user mode, interrupt. The third is AnyThread, which is never set: the sample
/// would be another thread's, and newer processors reserve it (SDM, "AnyThread Counting and Software Evolution").
const FIXED: u64 = 0b1011;
/// Of IA32_DEBUGCTL: an interrupt clears the global control by itself.
const FREEZE_PERFMON_ON_PMI: u64 = 1 << 12;
/// Bits that a write sets where the others follow the highest of them.
const SHORT_WRITE: u8 = 32;

/// A counter of one CPU; every CPU with the same claims has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    select: Msr,
    /// What it counts, and where.
    event: u64,
    count: Msr,
    /// Its highest bit.
    sign: u64,
    /// Bits that a write sets, as a mask.
    writable: u64,
    global: Option<Global>,
    counters: u8,
    may_freeze: bool,
}

/// Registers that all counters share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Global {
    control: Msr,
    status: Msr,
    acknowledge: Msr,
    /// This counter's bit in each.
    bit: u64,
    /// What is acknowledged at the start: every claimed counter's, and what has frozen them.
    all: u64,
}

impl Global {
    const fn intel(claims: &Claims, bit: u32) -> Self {
        Self {
            control: Msr::INTEL_CONTROL,
            status: Msr::INTEL_STATUS,
            acknowledge: Msr::INTEL_ACKNOWLEDGE,
            bit: 1 << bit,
            all: claims.all_counters() | claims.frozen(),
        }
    }
}

/// So many bits.
const fn ones(bits: u8) -> u64 {
    match 1_u64.checked_shl(bits as u32) {
        Some(next) => next - 1,
        None => u64::MAX,
    }
}

/// The highest of so many bits.
const fn highest(bits: u8) -> u64 {
    ones(bits) & !(ones(bits) >> 1)
}

/// What makes an event of a select register: its number has four bits more far up on AMD, where Intel has none.
const fn select(event: u16, unit_mask: u8) -> u64 {
    let event = (event & 0xff) as u64 | (event as u64 >> 8 & 0xf) << 32;
    event | (unit_mask as u64) << 8 | USER | KERNEL | INTERRUPT | ENABLE
}

impl Counter {
    /// A fixed counter of an Intel processor.
    pub(super) const fn intel_fixed(claims: &Claims, index: u8) -> Self {
        Self {
            select: Msr::FIXED_CONTROL,
            event: FIXED << (index * 4),
            count: Msr::fixed_counter(index),
            sign: highest(claims.fixed_bits),
            writable: ones(claims.fixed_bits),
            global: Some(Global::intel(claims, 32 + index as u32)),
            counters: claims.counters,
            may_freeze: claims.may_freeze,
        }
    }

    /// A programmable counter of an Intel processor. If it is not written in [full width](Claims::full_width), bit 31 of what is
    /// written is extended to the bits above.
    #[must_use]
    pub const fn intel(
        claims: &Claims,
        index: u8,
        event: u8,
        unit_mask: u8,
        full_width: bool,
    ) -> Self {
        let (count, write_bits) = if full_width {
            (Msr::intel_wide_counter(index), claims.counter_bits)
        } else {
            (Msr::intel_counter(index), SHORT_WRITE)
        };
        Self {
            select: Msr::intel_select(index),
            event: select(event as u16, unit_mask),
            count,
            sign: highest(claims.counter_bits),
            writable: ones(write_bits),
            global: Some(Global::intel(claims, index as u32)),
            counters: claims.counters,
            may_freeze: claims.may_freeze,
        }
    }

    /// A core counter of an AMD processor.
    #[must_use]
    pub const fn amd_core(claims: &Claims, index: u8, event: u16, unit_mask: u8) -> Self {
        let global = Global {
            control: Msr::AMD_CONTROL,
            status: Msr::AMD_STATUS,
            acknowledge: Msr::AMD_ACKNOWLEDGE,
            bit: 1 << index,
            all: claims.all_counters() | claims.frozen(),
        };
        Self {
            select: Msr::amd_select(index),
            event: select(event, unit_mask),
            count: Msr::amd_counter(index),
            sign: highest(claims.counter_bits),
            writable: ones(claims.counter_bits),
            global: if claims.version >= 2 {
                Some(global)
            } else {
                None
            },
            counters: claims.counters,
            may_freeze: claims.may_freeze,
        }
    }

    /// The longest period: the count it starts from must have its sign bit set.
    #[must_use]
    pub const fn period_max(&self) -> u64 {
        self.writable >> 1
    }

    const fn mask(&self) -> u64 {
        self.sign | self.sign.wrapping_sub(1)
    }

    /// What is written for an overflow after so many counts. Bits beyond the counter's are reserved.
    #[inline]
    const fn start_of(&self, period: u64) -> u64 {
        period.wrapping_neg() & self.writable
    }

    /// Puts the monitor into the one state that the rest of this begins from: nothing counts, whatever the firmware left, and an
    /// interrupt freezes nothing. Once on each CPU.
    ///
    /// # Errors
    /// A register faulted.
    pub fn claim<B: MonitorBus>(&self, bus: &B) -> Result<(), B::Fault> {
        bus.deliver(false);
        match self.global {
            Some(global) => bus.write(global.control, 0)?,
            // Each has a switch of its own.
            None => {
                for index in 0..self.counters.min(AMD_COUNTERS_MAX) {
                    bus.write(Msr::amd_select(index), 0)?;
                }
            }
        }
        if self.may_freeze {
            let debug = bus.read(Msr::DEBUG_CONTROL)?;
            if debug & FREEZE_PERFMON_ON_PMI != 0 {
                bus.write(Msr::DEBUG_CONTROL, debug & !FREEZE_PERFMON_ON_PMI)?;
            }
        }
        self.stop(bus)
    }

    /// Counts from here on without an interrupt, and so far from an overflow that there is none soon.
    ///
    /// # Errors
    /// A register faulted.
    pub fn count<B: MonitorBus>(&self, bus: &B) -> Result<(), B::Fault> {
        self.stop(bus)?;
        self.load(bus, self.period_max())?;
        bus.write(self.select, self.event)?;
        self.go_on(bus)
    }

    /// Counts, and interrupts after a period.
    ///
    /// # Errors
    /// A register faulted.
    pub fn start<B: MonitorBus>(&self, bus: &B, period: u64) -> Result<(), B::Fault> {
        if let Some(global) = self.global {
            bus.write(global.control, 0)?;
            bus.write(global.acknowledge, global.all)?;
        }
        self.load(bus, period)?;
        bus.deliver(true);
        bus.write(self.select, self.event)?;
        self.go_on(bus)
    }

    /// Counts no more, and has not overflowed. An interrupt that is on its way still comes.
    ///
    /// # Errors
    /// A register faulted.
    pub fn stop<B: MonitorBus>(&self, bus: &B) -> Result<(), B::Fault> {
        bus.write(self.select, 0)?;
        match self.global {
            Some(global) => {
                bus.write(global.control, 0)?;
                bus.write(global.acknowledge, global.all)?;
            }
            None => self.load(bus, self.period_max())?,
        }
        bus.deliver(false);
        Ok(())
    }

    /// The interrupt's first step. Whether the counter has overflowed; that is acknowledged.
    ///
    /// # Errors
    /// A register faulted.
    #[inline]
    pub fn enter<B: MonitorBus>(&self, bus: &B) -> Result<bool, B::Fault> {
        let Some(global) = self.global else {
            return self.has_overflowed(bus);
        };
        bus.write(global.control, 0)?;
        let overflowed = self.has_overflowed(bus)?;
        if overflowed {
            bus.write(global.acknowledge, global.bit)?;
        }
        Ok(overflowed)
    }

    /// The interrupt's last step, with the next period if the counter had overflowed.
    ///
    /// # Errors
    /// A register faulted.
    #[inline]
    pub fn leave<B: MonitorBus>(&self, bus: &B, period: Option<u64>) -> Result<(), B::Fault> {
        if let Some(period) = period {
            self.load(bus, period)?;
        }
        bus.deliver(true);
        self.go_on(bus)
    }

    /// Whether the counter has overflowed, and nobody has acknowledged it.
    ///
    /// # Errors
    /// A register faulted.
    #[inline]
    pub fn has_overflowed<B: MonitorBus>(&self, bus: &B) -> Result<bool, B::Fault> {
        match self.global {
            Some(global) => Ok(bus.read(global.status)? & global.bit != 0),
            None => Ok(bus.read(self.count)? & self.sign == 0),
        }
    }

    /// What it stands at.
    ///
    /// # Errors
    /// A register faulted.
    #[inline]
    pub fn read<B: MonitorBus>(&self, bus: &B) -> Result<u64, B::Fault> {
        Ok(bus.read(self.count)? & self.mask())
    }

    /// Counts from one reading to another.
    #[must_use]
    pub const fn counted(&self, from: u64, to: u64) -> u64 {
        to.wrapping_sub(from) & self.mask()
    }

    /// Its registers, and those that are shared.
    pub fn registers(&self) -> impl Iterator<Item = Msr> {
        let global = self.global.map(|global| [global.control, global.status]);
        [self.select, self.count]
            .into_iter()
            .chain(global.into_iter().flatten())
    }

    #[inline]
    fn load<B: MonitorBus>(&self, bus: &B, period: u64) -> Result<(), B::Fault> {
        bus.write(self.count, self.start_of(period))
    }

    #[inline]
    fn go_on<B: MonitorBus>(&self, bus: &B) -> Result<(), B::Fault> {
        match self.global {
            Some(global) => bus.write(global.control, global.bit),
            None => Ok(()),
        }
    }
}
