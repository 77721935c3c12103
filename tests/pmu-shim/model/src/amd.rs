//! AMD's performance counters by the core extension (AMD64 manual volume 2, "Performance Monitoring Counters"), and with the global registers of version 2
//! (processor programming reference for family 19h model 11h, MSRC000_0300 to MSRC000_0303). One event exists: 0x76, cycles not halted.

use crate::pmu::Fault;
use crate::{WIDTH, count, to_end};

/// Counters.
pub const COUNTERS: u32 = 6;
/// Control and value of each, one after the other.
const FIRST: u32 = 0xc001_0200;
const LAST: u32 = FIRST + 2 * COUNTERS - 1;
const STATUS: u32 = 0xc000_0300;
const GLOBAL: u32 = 0xc000_0301;
const STATUS_CLEAR: u32 = 0xc000_0302;
const STATUS_SET: u32 = 0xc000_0303;

const EVENT: u64 = 0xf_0000_00ff;
const CYCLES: u64 = 0x76;
const USER: u64 = 1 << 16;
const KERNEL: u64 = 1 << 17;
const INTERRUPT: u64 = 1 << 20;
const ENABLED: u64 = 1 << 22;
/// Unit mask, edges, inversion, count mask, and the restrictions to guests and hosts: none of them is known here.
const UNKNOWN: u64 = 0x300_ff84_ff00;
const RESERVED: u64 = !(EVENT | USER | KERNEL | INTERRUPT | ENABLED | UNKNOWN);

const ALL: u64 = (1 << COUNTERS) - 1;

/// The registers of one CPU.
#[derive(Debug)]
pub struct Amd {
    controls: [u64; COUNTERS as usize],
    values: [u64; COUNTERS as usize],
    /// Whether there are the global registers.
    v2: bool,
    global: u64,
    status: u64,
}

impl Amd {
    /// As firmware may leave them: nothing counts, and a status is set of a counter that nobody has programmed.
    pub const fn new(v2: bool) -> Self {
        Self {
            controls: [0; COUNTERS as usize],
            values: [0; COUNTERS as usize],
            v2,
            global: 0,
            status: 1 << (COUNTERS - 1),
        }
    }

    /// What a register reads as of counters that never tell of an overflow: without a status that is a counter's sign.
    pub const fn blank(&self, msr: u32, value: u64) -> u64 {
        match msr {
            STATUS => 0,
            FIRST..=LAST if !self.v2 && !msr.is_multiple_of(2) => value | 1 << (WIDTH - 1),
            _ => value,
        }
    }

    pub fn read(&self, msr: u32) -> Result<u64, Fault> {
        match msr {
            FIRST..=LAST => {
                let index = ((msr - FIRST) / 2) as usize;
                let is_control = msr.is_multiple_of(2);
                Ok(if is_control {
                    self.controls
                } else {
                    self.values
                }[index])
            }
            STATUS if self.v2 => Ok(self.status),
            GLOBAL if self.v2 => Ok(self.global),
            STATUS_CLEAR | STATUS_SET if self.v2 => Ok(0),
            _ => Err(Fault),
        }
    }

    pub fn write(&mut self, msr: u32, value: u64) -> Result<(), Fault> {
        match msr {
            FIRST..=LAST => {
                let index = ((msr - FIRST) / 2) as usize;
                if !msr.is_multiple_of(2) {
                    self.values[index] = value & ((1 << WIDTH) - 1);
                } else if value & RESERVED != 0 {
                    return Err(Fault);
                } else {
                    self.controls[index] = value;
                }
            }
            GLOBAL if self.v2 => self.global = value & ALL,
            STATUS_CLEAR if self.v2 => self.status &= !value,
            STATUS_SET if self.v2 => self.status |= value & ALL,
            _ => return Err(Fault),
        }
        Ok(())
    }

    /// Time passed; whether a counter overflowed that interrupts then.
    pub fn advance(&mut self, cycles: u64) -> bool {
        let mut interrupts = false;
        for index in 0..COUNTERS {
            let at = index as usize;
            if self.counts(index) && count(&mut self.values[at], cycles) {
                self.status |= 1 << index;
                interrupts |= self.controls[at] & INTERRUPT != 0;
            }
        }
        interrupts
    }

    /// Cycles until one interrupts.
    pub fn until_interrupt(&self) -> Option<u64> {
        let interrupting =
            |&index: &u32| self.counts(index) && self.controls[index as usize] & INTERRUPT != 0;
        let left = |index: u32| to_end(self.values[index as usize]);
        (0..COUNTERS).filter(interrupting).map(left).min()
    }

    /// Whether one counts. One that is to count in the kernel or in programs alone stands still: which of them runs is not known
    /// here.
    const fn counts(&self, index: u32) -> bool {
        const WANTED: u64 = CYCLES | USER | KERNEL | ENABLED;
        let control = self.controls[index as usize];
        control & !INTERRUPT == WANTED && (!self.v2 || self.global >> index & 1 == 1)
    }
}
