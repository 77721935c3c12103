//! Intel's architectural performance monitoring, version 2 (SDM, "Architectural Performance Monitoring Version 2"), with fixed counters alone. All three
//! count cycles: where an instruction takes one, as with an emulator that counts them, that is what each of them would.

use crate::pmu::Fault;
use crate::{WIDTH, count, to_end};

/// Fixed counters.
pub const FIXED: u32 = 3;
const VALUES: u32 = 0x309;
const VALUES_END: u32 = VALUES + FIXED - 1;
/// IA32_PERF_CAPABILITIES, which says of nothing here that it is there.
const CAPABILITIES: u32 = 0x345;
const CONTROL: u32 = 0x38d;
const STATUS: u32 = 0x38e;
const GLOBAL: u32 = 0x38f;
const OVERFLOW_CONTROL: u32 = 0x390;

/// Bits of one counter in the control register: it counts in the kernel, in programs, and interrupts. A fourth, AnyThread, comes with
/// version 3.
const KERNEL: u64 = 1 << 0;
const USER: u64 = 1 << 1;
const INTERRUPT: u64 = 1 << 3;
const FIELD: u32 = 4;
const CONTROL_BITS: u64 = 0xbbb;
/// Of the fixed counters in the global registers.
const FIRST: u32 = 32;
const GLOBAL_BITS: u64 = 0b111 << FIRST;
/// Of the status: the state changed, and the buffer of debug stores overflowed.
const CHANGED: u64 = 1 << 63;
const BUFFER: u64 = 1 << 62;

/// The registers of one CPU.
#[derive(Debug)]
pub struct Intel {
    values: [u64; FIXED as usize],
    control: u64,
    status: u64,
    global: u64,
}

impl Intel {
    /// As firmware may leave them: nothing counts, and a status that is nobody's is set.
    pub const fn new() -> Self {
        Self {
            values: [0; FIXED as usize],
            control: 0,
            status: CHANGED,
            global: 0,
        }
    }

    /// What a register reads as of counters that never tell of an overflow.
    pub const fn blank(msr: u32, value: u64) -> u64 {
        if msr == STATUS { 0 } else { value }
    }

    pub fn read(&self, msr: u32) -> Result<u64, Fault> {
        match msr {
            VALUES..=VALUES_END => Ok(self.values[(msr - VALUES) as usize]),
            CONTROL => Ok(self.control),
            STATUS => Ok(self.status),
            GLOBAL => Ok(self.global),
            OVERFLOW_CONTROL | CAPABILITIES => Ok(0),
            _ => Err(Fault),
        }
    }

    pub fn write(&mut self, msr: u32, value: u64) -> Result<(), Fault> {
        let allowed = |bits: u64| {
            if value & !bits == 0 {
                Ok(value)
            } else {
                Err(Fault)
            }
        };
        match msr {
            VALUES..=VALUES_END => {
                self.values[(msr - VALUES) as usize] = allowed((1 << WIDTH) - 1)?;
            }
            CONTROL => self.control = allowed(CONTROL_BITS)?,
            GLOBAL => self.global = allowed(GLOBAL_BITS)?,
            OVERFLOW_CONTROL => self.status &= !allowed(GLOBAL_BITS | BUFFER | CHANGED)?,
            _ => return Err(Fault),
        }
        Ok(())
    }

    /// Time passed; whether a counter overflowed that interrupts then.
    pub fn advance(&mut self, cycles: u64) -> bool {
        let mut interrupts = false;
        for index in self.counting() {
            if count(&mut self.values[index as usize], cycles) {
                self.status |= 1 << (FIRST + index);
                interrupts |= self.field(index) & INTERRUPT != 0;
            }
        }
        interrupts
    }

    /// Cycles until one interrupts.
    pub fn until_interrupt(&self) -> Option<u64> {
        let interrupting = |&index: &u32| self.field(index) & INTERRUPT != 0;
        let left = |index: u32| to_end(self.values[index as usize]);
        self.counting().filter(interrupting).map(left).min()
    }

    /// An interrupt with FREEZE_PERFMON_ON_PMI set stops all counters (SDM, "Freezing LBR and Performance Counters on
    /// PMI").
    pub fn freeze(&mut self) {
        self.global = 0;
    }

    const fn field(&self, index: u32) -> u64 {
        self.control >> (FIELD * index)
    }

    /// Those that count. One that is to count in the kernel or in programs alone stands still: which of them runs is not known
    /// here.
    fn counting(&self) -> impl Iterator<Item = u32> + use<> {
        let (control, global) = (self.control, self.global);
        (0..FIXED).filter(move |index| {
            let field = control >> (FIELD * index);
            field & KERNEL != 0 && field & USER != 0 && global >> (FIRST + index) & 1 == 1
        })
    }
}
