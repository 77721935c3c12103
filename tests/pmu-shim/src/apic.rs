//! The guest's x2APIC, by the registers of this CPU's xAPIC (SDM volume 3A, "Extended xAPIC (x2APIC)"): those have the same
//! meaning at 16 times the offset, but for the id and the command. The counters' local vector is the model's.

use crate::cpu::{Cpu, MAILBOXES};
use crate::memory::Device;
use crate::report::give_up;
use crate::start::TRAMPOLINE;
use core::sync::atomic::Ordering;
use pmu_model::pmu::Fault;
use x86_64::registers::model_specific::Msr;

const APIC_BASE: u32 = 0x1b;
/// x2APIC mode, in the base register.
const X2: u64 = 1 << 10;
const FIRST: u32 = 0x800;

const ID: u32 = 0x020;
const VERSION: u32 = 0x030;
const TASK_PRIORITY: u32 = 0x080;
const EOI: u32 = 0x0b0;
const LOGICAL_ID: u32 = 0x0d0;
const SPURIOUS: u32 = 0x0f0;
const IN_SERVICE: u32 = 0x100;
const REQUESTED_LAST: u32 = 0x270;
const ERRORS: u32 = 0x280;
const COMMAND: u32 = 0x300;
const COMMAND_HIGH: u32 = 0x310;
const VECTOR_FIRST: u32 = 0x320;
const VECTOR_COUNTERS: u32 = 0x340;
const VECTOR_LAST: u32 = 0x370;
const TIMER_INITIAL: u32 = 0x380;
const TIMER_CURRENT: u32 = 0x390;
const TIMER_DIVIDE: u32 = 0x3e0;
const SELF: u32 = 0x3f0;

/// Of a command: vector, delivery mode, logical destination, shorthand.
const VECTOR: u32 = 0xff;
const MODE: u32 = 0b111 << 8;
const NMI: u32 = 0b100 << 8;
const START: u32 = 0b110 << 8;
const LOGICAL: u32 = 1 << 11;
const SHORTHAND: u32 = 0b11 << 18;
const TO_SELF: u32 = 0b01 << 18;
const ASSERT: u32 = 1 << 14;

/// This CPU's xAPIC.
fn device() -> Device {
    // SAFETY: where every CPU has its own after a reset; the shim moves none, and the guest's writes to the base register do not
    // reach it. Its registers touch no memory.
    unsafe { Device::new(0xfee0_0000) }
}

/// This CPU's id.
pub fn own_id() -> u8 {
    (device().read(ID) >> 24) as u8
}

/// The base register as the reset left it.
pub fn base() -> u64 {
    // SAFETY: every CPU with an APIC has the register; reading it changes nothing.
    unsafe { Msr::new(APIC_BASE).read() }
}

/// Sends a CPU an NMI.
pub fn nmi(to: u8) {
    send(to, NMI | ASSERT);
}

fn send(to: u8, command: u32) {
    device().write(COMMAND_HIGH, u32::from(to) << 24);
    device().write(COMMAND, command);
}

const fn offset(register: u32) -> u32 {
    (register - FIRST) << 4
}

pub fn read(cpu: &Cpu, register: u32) -> Result<u64, Fault> {
    if cpu.apic_base & X2 == 0 {
        return Err(Fault);
    }
    let value = match offset(register) {
        ID => cpu.id.into(),
        // The cluster in the upper half, a bit in the lower ("Deriving Logical x2APIC ID from the Local x2APIC ID").
        LOGICAL_ID => u32::from(cpu.id) >> 4 << 16 | 1 << (cpu.id & 0xf),
        COMMAND => return Ok(command(device())),
        VECTOR_COUNTERS => cpu.pmu.vector(),
        offset @ (VERSION | TASK_PRIORITY | SPURIOUS | ERRORS | TIMER_INITIAL | TIMER_CURRENT
        | TIMER_DIVIDE) => device().read(offset),
        offset @ (IN_SERVICE..=REQUESTED_LAST | VECTOR_FIRST..=VECTOR_LAST) => {
            device().read(offset)
        }
        _ => return Err(Fault),
    };
    Ok(value.into())
}

fn command(device: Device) -> u64 {
    let high = u64::from(device.read(COMMAND_HIGH) >> 24);
    high << 32 | u64::from(device.read(COMMAND))
}

pub fn write(cpu: &mut Cpu, register: u32, value: u64) -> Result<(), Fault> {
    let low = value as u32;
    if cpu.apic_base & X2 == 0 {
        return Err(Fault);
    }
    if offset(register) == COMMAND {
        issue((value >> 32) as u32, low);
        return Ok(());
    }
    if value >> 32 != 0 {
        return Err(Fault);
    }
    match offset(register) {
        VECTOR_COUNTERS => cpu.pmu.set_vector(low),
        SELF => device().write(COMMAND, TO_SELF | low & VECTOR),
        EOI | ERRORS if low != 0 => return Err(Fault),
        offset @ (TASK_PRIORITY
        | EOI
        | SPURIOUS
        | ERRORS
        | VECTOR_FIRST..=VECTOR_LAST
        | TIMER_INITIAL
        | TIMER_DIVIDE) => device().write(offset, low),
        _ => return Err(Fault),
    }
    Ok(())
}

/// Sends what the guest sends. An NMI is left in the mailbox of the CPU that it is for, which is then made to look; a CPU that is to
/// start starts in the shim, which finds in its mailbox where the guest does.
fn issue(to: u32, command: u32) {
    let mailbox = || {
        let other = u8::try_from(to)
            .ok()
            .filter(|_| command & (LOGICAL | SHORTHAND) == 0);
        let found = other.and_then(|id| Some((id, MAILBOXES.get(usize::from(id))?)));
        found.unwrap_or_else(|| give_up(format_args!("interrupt command {command:#x} to {to:#x}")))
    };
    match command & MODE {
        NMI => {
            let (id, mailbox) = mailbox();
            mailbox.nmi.store(true, Ordering::Release);
            nmi(id);
        }
        START => {
            let (id, mailbox) = mailbox();
            mailbox
                .page
                .store((command & VECTOR) as u8, Ordering::Release);
            send(id, command & !VECTOR | (TRAMPOLINE >> 12) as u32);
        }
        _ if command & (LOGICAL | SHORTHAND) == 0 => send(to as u8, command),
        _ if command & SHORTHAND != 0 => device().write(COMMAND, command),
        _ => give_up(format_args!("interrupt command {command:#x} to {to:#x}")),
    }
}
