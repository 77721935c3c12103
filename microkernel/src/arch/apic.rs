//! How the registers of the interrupt controllers are reached.

use super::devices::Registers;
use core::sync::atomic::{Ordering, fence};
use kcore::apic::io::IoBus;
use kcore::apic::local::{LocalBus, Register};
use x86_64::instructions::port::Port;
use x86_64::registers::model_specific::Msr;

/// The local APIC of whichever CPU uses it: all have theirs at the same place.
#[derive(Clone, Copy, Debug)]
pub enum Local {
    /// Registers in memory.
    X(Registers<0x400>),
    /// Registers among the MSRs.
    X2,
}

const IA32_APIC_BASE: u32 = 0x1b;
const IA32_TSC_DEADLINE: u32 = 0x6e0;
const COMMAND: u32 = 0x830;

/// Writes an MSR of the APIC.
fn write_msr(msr: u32, value: u64) {
    // SAFETY: only the APIC's registers are written here; what the APIC does, it does by interrupts and not to memory.
    unsafe { Msr::new(msr).write(value) };
}

fn read_msr(msr: u32) -> u64 {
    // SAFETY: only the APIC's registers are read here, and only those that it has.
    unsafe { Msr::new(msr).read() }
}

impl Local {
    /// Switches this CPU's APIC on, in this form.
    pub fn switch_on(&self) {
        const ON: u64 = 1 << 11;
        const X2: u64 = 1 << 10;
        let base = read_msr(IA32_APIC_BASE);
        match self {
            Self::X(_) => write_msr(IA32_APIC_BASE, base | ON),
            // Off to x2APIC is not a legal step; through xAPIC it is (Intel SDM volume 3, 11.12.5).
            Self::X2 => {
                write_msr(IA32_APIC_BASE, base | ON);
                write_msr(IA32_APIC_BASE, base | ON | X2);
            }
        }
    }

    /// Whether this CPU's APIC is an x2APIC: the firmware may have left it so, and there is no direct way back; and one that is claimed and
    /// not there does not become one.
    #[must_use]
    pub fn is_x2() -> bool {
        read_msr(IA32_APIC_BASE) >> 10 & 1 == 1
    }
}

impl LocalBus for Local {
    fn x2(&self) -> bool {
        matches!(self, Self::X2)
    }
    fn read(&self, register: Register) -> u32 {
        match self {
            Self::X(registers) => registers.read(register as u64),
            Self::X2 => read_msr(register.msr()) as u32,
        }
    }
    fn write(&self, register: Register, value: u32) {
        match self {
            Self::X(registers) => registers.write(register as u64, value),
            Self::X2 => write_msr(register.msr(), value.into()),
        }
    }
    fn write_command(&self, value: u64) {
        // The MSR does not wait for writes to memory that the other CPU is to see (11.12.3).
        fence(Ordering::SeqCst);
        write_msr(COMMAND, value);
    }
    fn write_deadline(&self, tsc: u64) {
        // Nor for a write to an xAPIC's LVT register (11.5.4.1).
        fence(Ordering::SeqCst);
        write_msr(IA32_TSC_DEADLINE, tsc);
    }
}

/// An I/O APIC's index and data registers.
#[derive(Clone, Copy, Debug)]
pub struct Io(pub Registers<0x20>);

impl IoBus for Io {
    fn read(&self, index: u8) -> u32 {
        self.0.write(0, index.into());
        self.0.read(0x10)
    }
    fn write(&self, index: u8, value: u32) {
        self.0.write(0, index.into());
        self.0.write(0x10, value);
    }
}

/// Moves the two old interrupt controllers' vectors out of the way of exceptions, and masks all their lines (Intel 8259A
/// datasheet). Runs the old timer out, whose line may be the HPET's too: in mode 0 it signals once, here after one count, and never again
/// (Intel 8254 datasheet).
pub fn silence_old_controllers() {
    let first = kcore::apic::vector::OLD_LINES;
    let writes: [(u16, u8); 13] = [
        (0x20, 0x11),
        (0xa0, 0x11),
        (0x21, first),
        (0xa1, first + 8),
        (0x21, 4),
        (0xa1, 2),
        (0x21, 1),
        (0xa1, 1),
        (0x21, 0xff),
        (0xa1, 0xff),
        (0x43, 0x30),
        (0x40, 1),
        (0x40, 0),
    ];
    for (port, value) in writes {
        // SAFETY: the controllers' registers touch no memory.
        unsafe { Port::new(port).write(value) };
    }
}
