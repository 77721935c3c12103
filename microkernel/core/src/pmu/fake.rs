//! A performance monitor that is hostile on purpose: it faults where a processor may, counts whenever it likes between two accesses, and
//! lets its interrupts take their time. It has the registers of one interface and no others.

use super::bus::{GeneralProtection, MonitorBus};
use super::claims::Claims;
use super::msr::Msr;
use ipc::abi::monitor::Interface;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

pub mod thread;

/// How it misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Good,
    /// Writes are swallowed, and all reads zero.
    Swallows,
    /// What is written reads back, and does not count.
    Latches,
    /// Every access faults.
    Faults,
    /// It counts, and never interrupts.
    Silent,
    /// It never tells that it has overflowed.
    Blank,
    /// It tells so always.
    Stuck,
}

/// What one access was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read(Msr),
    Write(Msr, u64),
    Deliver(bool),
}

/// Bits of the status that are another unit's, and that firmware left.
pub const STRANGE_STATUS: u64 = 1 << 62 | 1 << 55;
/// The bit of the status that keeps all counters from counting.
const FROZEN: u64 = 1 << 59;

const INTERRUPT: u64 = 1 << 20;
const ENABLE: u64 = 1 << 22;
const FREEZE: u64 = 1 << 12;

/// The monitor of one CPU.
pub struct FakeMonitor {
    pub claims: Claims,
    pub mode: Mode,
    /// IA32_PERF_CAPABILITIES, if there is such a register. Its bit 13 says whether there are wide registers of counters.
    pub capabilities: Cell<u64>,
    /// Values of the registers that are no counters and no status.
    registers: RefCell<BTreeMap<Msr, u64>>,
    /// Counters by their register.
    counts: RefCell<BTreeMap<Msr, u64>>,
    status: Cell<u64>,
    pub unmasked: Cell<bool>,
    /// Interrupts that have left and are not there yet.
    pub on_their_way: Cell<u32>,
    /// The next overflow's interrupt is lost.
    pub drops: Cell<bool>,
    pub log: RefCell<Vec<Access>>,
    /// Overflows that were acknowledged.
    pub acknowledged: Cell<u64>,
}

impl FakeMonitor {
    pub fn new(claims: Claims, mode: Mode) -> Self {
        let mut registers = BTreeMap::new();
        let mut counts = BTreeMap::new();
        match claims.interface {
            Interface::None => {}
            Interface::Intel => {
                registers.insert(Msr::FIXED_CONTROL, 0xbbb);
                registers.insert(Msr::INTEL_CONTROL, claims.all_counters());
                if claims.has_capabilities {
                    registers.insert(Msr::DEBUG_CONTROL, FREEZE | 1 << 14);
                }
                for index in (0..16).filter(|index| claims.fixed >> index & 1 == 1) {
                    counts.insert(Msr::fixed_counter(index), 0);
                }
                for index in 0..claims.counters {
                    registers.insert(Msr::intel_select(index), 0);
                    counts.insert(Msr::intel_counter(index), 0);
                    counts.insert(Msr::intel_wide_counter(index), 0);
                }
            }
            Interface::AmdCore | Interface::AmdCoreV2 => {
                for index in 0..claims.counters {
                    registers.insert(Msr::amd_select(index), 0x76 | ENABLE | 3 << 16);
                    counts.insert(Msr::amd_counter(index), 0);
                }
                if claims.version >= 2 {
                    registers.insert(Msr::AMD_CONTROL, claims.all_counters());
                }
                if claims.may_freeze {
                    registers.insert(Msr::DEBUG_CONTROL, FREEZE | 1 << 14);
                }
            }
        }
        Self {
            claims,
            mode,
            capabilities: Cell::new(1 << 13),
            registers: RefCell::new(registers),
            counts: RefCell::new(counts),
            status: Cell::new(STRANGE_STATUS | claims.all_counters() | Self::frozen(&claims)),
            unmasked: Cell::new(false),
            on_their_way: Cell::new(0),
            drops: Cell::new(false),
            log: RefCell::default(),
            acknowledged: Cell::new(0),
        }
    }

    const fn frozen(claims: &Claims) -> u64 {
        let is_status = match claims.interface {
            Interface::Intel => claims.version >= 4,
            _ => claims.may_freeze,
        };
        if is_status { FROZEN } else { 0 }
    }

    pub fn register(&self, msr: Msr) -> u64 {
        self.registers.borrow()[&msr]
    }
    pub fn status(&self) -> u64 {
        self.status.get()
    }
    pub fn value(&self, count: Msr) -> u64 {
        self.counts.borrow()[&count]
    }

    /// The counter of cycles: its register, bits, bit in the status, and whether it counts and interrupts.
    fn cycles(&self) -> (Msr, u8, u64, bool, bool) {
        let registers = self.registers.borrow();
        if self.claims.interface == Interface::Intel {
            let field = registers[&Msr::FIXED_CONTROL] >> 4 & 0xf;
            let bit = 1 << 33;
            let on = field & 3 == 3 && registers[&Msr::INTEL_CONTROL] & bit != 0;
            let count = Msr::fixed_counter(1);
            return (count, self.claims.fixed_bits, bit, on, field & 8 != 0);
        }
        let select = registers[&Msr::amd_select(0)];
        let global = registers.get(&Msr::AMD_CONTROL).copied().unwrap_or(1);
        let is_cycles = select & 0xf_0000_00ff == 0x76 && select >> 16 & 3 == 3;
        let on = is_cycles && select & ENABLE != 0 && global & 1 == 1;
        let interrupts = select & INTERRUPT != 0;
        (Msr::amd_counter(0), 48, 1, on, interrupts)
    }

    /// Whether it counts now.
    pub fn counts(&self) -> bool {
        self.cycles().3
    }
    /// Whether it counts now, below zero: so that it will overflow.
    pub fn is_running(&self) -> bool {
        let (count, bits, _, on, interrupts) = self.cycles();
        on && interrupts && self.value(count) >> (bits - 1) & 1 == 1
    }
    /// Whether it has overflowed, and nobody has acknowledged that.
    pub fn has_overflowed(&self) -> bool {
        let (count, bits, bit, ..) = self.cycles();
        if self.has_status() {
            self.status.get() & bit != 0
        } else {
            self.value(count) >> (bits - 1) & 1 == 0
        }
    }
    const fn has_status(&self) -> bool {
        self.claims.version >= 2
    }

    /// So many cycles pass.
    pub fn advance(&self, cycles: u64) {
        let (msr, bits, bit, on, interrupts) = self.cycles();
        let stands = self.has_status() && self.status.get() & FROZEN != 0;
        if !on || stands || matches!(self.mode, Mode::Swallows | Mode::Latches) {
            return;
        }
        let count = u128::from(self.value(msr)) + u128::from(cycles);
        self.counts
            .borrow_mut()
            .insert(msr, count as u64 & ((1 << bits) - 1));
        if count >> bits == 0 {
            return;
        }
        if self.has_status() {
            self.status.set(self.status.get() | bit);
        }
        if interrupts && self.unmasked.get() && self.mode != Mode::Silent && !self.drops.take() {
            self.on_their_way.set(self.on_their_way.get() + 1);
            self.freeze();
        }
        // Delivery masks the entry, lost or not.
        if interrupts {
            self.unmasked.set(false);
        }
    }

    /// An interrupt stops the counters, if that is on: until the status is acknowledged, or, before there was a bit for it, by the
    /// global control.
    fn freeze(&self) {
        let mut registers = self.registers.borrow_mut();
        let debug = registers.get(&Msr::DEBUG_CONTROL);
        if debug.is_none_or(|debug| debug & FREEZE == 0) {
            return;
        }
        match Self::frozen(&self.claims) {
            0 => {
                registers.insert(Msr::INTEL_CONTROL, 0);
            }
            frozen => self.status.set(self.status.get() | frozen),
        }
    }

    /// Bits of a register that may be written.
    fn writable(&self, msr: Msr) -> u64 {
        let claims = &self.claims;
        match msr {
            Msr::FIXED_CONTROL => {
                let any_thread = if matches!(claims.version, 3 | 4) {
                    0b0100
                } else {
                    0
                };
                (0..16)
                    .filter(|index| claims.fixed >> index & 1 == 1)
                    .map(|index| (0b1011 | any_thread) << (index * 4))
                    .sum()
            }
            Msr::INTEL_CONTROL | Msr::AMD_CONTROL => claims.all_counters(),
            Msr::AMD_ACKNOWLEDGE => claims.all_counters() | Self::frozen(claims),
            Msr::INTEL_ACKNOWLEDGE => claims.all_counters() | STRANGE_STATUS | Self::frozen(claims),
            Msr::DEBUG_CONTROL => FREEZE | 1 << 14,
            Msr::INTEL_STATUS | Msr::AMD_STATUS | Msr::CAPABILITIES => 0,
            // Reserved: 19 and 21, and all above the event's upper bits.
            _ => 0xf_ffff_ffff & !(1 << 19 | 1 << 21),
        }
    }

    fn fault_unless(allowed: bool) -> Result<(), GeneralProtection> {
        allowed.then_some(()).ok_or(GeneralProtection)
    }

    fn write_count(&self, msr: Msr, value: u64) -> Result<(), GeneralProtection> {
        let claims = &self.claims;
        let is_short = (0..claims.counters).any(|index| msr == Msr::intel_counter(index));
        let bits = match claims.interface {
            Interface::Intel if (0..16).any(|index| msr == Msr::fixed_counter(index)) => {
                claims.fixed_bits
            }
            _ => claims.counter_bits,
        };
        let value = if is_short {
            value as u32 as i32 as u64 & ((1 << bits) - 1)
        } else {
            Self::fault_unless(value >> bits == 0)?;
            value
        };
        if !self.has_status() && self.has_overflowed() && value >> (bits - 1) & 1 == 1 {
            self.acknowledged.set(self.acknowledged.get() + 1);
        }
        self.counts.borrow_mut().insert(msr, value);
        Ok(())
    }

    /// One of the wide registers of counters, which not all processors have.
    fn is_missing(&self, msr: Msr) -> bool {
        let has_wide = self.claims.has_capabilities && self.capabilities.get() >> 13 & 1 == 1;
        let mut wide = (0..self.claims.counters.min(8)).map(Msr::intel_wide_counter);
        !has_wide && wide.any(|counter| counter == msr)
    }

    /// Reads as a processor does.
    pub fn read_now(&self, msr: Msr) -> Result<u64, GeneralProtection> {
        let found = match msr {
            Msr::INTEL_STATUS if self.claims.interface == Interface::Intel => {
                Some(self.status.get())
            }
            Msr::AMD_STATUS if self.claims.interface == Interface::AmdCoreV2 => {
                Some(self.status.get())
            }
            Msr::CAPABILITIES if self.claims.has_capabilities => Some(self.capabilities.get()),
            _ if self.is_missing(msr) => None,
            _ => {
                let counts = self.counts.borrow();
                let registers = self.registers.borrow();
                counts.get(&msr).or_else(|| registers.get(&msr)).copied()
            }
        };
        let (count, bits, bit, ..) = self.cycles();
        let (overflowed, running) = match msr {
            Msr::INTEL_STATUS | Msr::AMD_STATUS => (bit, 0),
            _ if msr == count && !self.has_status() => (0, 1 << (bits - 1)),
            _ => (0, 0),
        };
        match (self.mode, found) {
            (Mode::Faults, _) | (_, None) => Err(GeneralProtection),
            (Mode::Swallows, _) => Ok(0),
            (Mode::Blank, Some(value)) => Ok(value & !overflowed | running),
            (Mode::Stuck, Some(value)) => Ok(value & !running | overflowed),
            (_, Some(value)) => Ok(value),
        }
    }

    /// Writes as a processor does.
    pub fn write_now(&self, msr: Msr, value: u64) -> Result<(), GeneralProtection> {
        self.log.borrow_mut().push(Access::Write(msr, value));
        if self.mode == Mode::Faults || self.is_missing(msr) {
            return Err(GeneralProtection);
        }
        if self.counts.borrow().contains_key(&msr) {
            return if self.mode == Mode::Swallows {
                Ok(())
            } else {
                self.write_count(msr, value)
            };
        }
        let acknowledges = match self.claims.interface {
            Interface::Intel => msr == Msr::INTEL_ACKNOWLEDGE,
            Interface::AmdCoreV2 => msr == Msr::AMD_ACKNOWLEDGE,
            Interface::None | Interface::AmdCore => false,
        };
        Self::fault_unless(acknowledges || self.registers.borrow().contains_key(&msr))?;
        Self::fault_unless(value & !self.writable(msr) == 0)?;
        if acknowledges {
            let (_, _, bit, ..) = self.cycles();
            if self.status.get() & value & bit != 0 {
                self.acknowledged.set(self.acknowledged.get() + 1);
            }
            self.status.set(self.status.get() & !value);
        } else if self.mode != Mode::Swallows {
            self.registers.borrow_mut().insert(msr, value);
        }
        Ok(())
    }

    pub fn deliver_now(&self, unmasked: bool) {
        self.log.borrow_mut().push(Access::Deliver(unmasked));
        self.unmasked.set(unmasked);
    }
}

impl MonitorBus for FakeMonitor {
    type Fault = GeneralProtection;

    fn read(&self, msr: Msr) -> Result<u64, GeneralProtection> {
        self.log.borrow_mut().push(Access::Read(msr));
        self.read_now(msr)
    }
    fn write(&self, msr: Msr, value: u64) -> Result<(), GeneralProtection> {
        self.write_now(msr, value)
    }
    fn deliver(&self, unmasked: bool) {
        self.deliver_now(unmasked);
    }
}

/// CPUs that claim each of the interfaces.
pub fn claims_of_all() -> [Claims; 5] {
    let intel = Claims {
        interface: Interface::Intel,
        version: 4,
        counters: 4,
        counter_bits: 48,
        fixed: 0b111,
        fixed_bits: 48,
        has_capabilities: true,
        may_freeze: true,
    };
    let amd = Claims {
        interface: Interface::AmdCore,
        version: 1,
        counters: 6,
        counter_bits: 48,
        fixed: 0,
        fixed_bits: 0,
        has_capabilities: false,
        may_freeze: false,
    };
    [
        intel,
        Claims {
            version: 5,
            fixed: 0b1010,
            fixed_bits: 40,
            ..intel
        },
        amd,
        Claims {
            interface: Interface::AmdCoreV2,
            version: 2,
            may_freeze: true,
            ..amd
        },
        Claims {
            version: 2,
            counters: 2,
            counter_bits: 40,
            fixed_bits: 40,
            ..intel
        },
    ]
}
