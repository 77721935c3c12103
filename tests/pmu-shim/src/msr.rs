//! The guest's model-specific registers that are trapped.

use crate::apic;
use crate::cpu::Cpu;
use crate::vmcb::SVME;
use core::ops::RangeInclusive;
use pmu_model::msr::{COUNTERS, MAP_BYTES, permission};
use pmu_model::pmu::Fault;

const APIC_BASE: u32 = 0x1b;
const APIC: RangeInclusive<u32> = 0x800..=0x8ff;
const EFER: u32 = 0xc000_0080;
const EFER_LONG_MODE_ACTIVE: u64 = 1 << 10;

#[repr(C, align(4096))]
struct Map([u8; MAP_BYTES]);

static MAP: Map = Map(map());

/// A bit for reading and one for writing of each register.
const fn map() -> [u8; MAP_BYTES] {
    let mut map = [0; MAP_BYTES];
    trap(&mut map, APIC_BASE..=APIC_BASE);
    trap(&mut map, APIC);
    trap(&mut map, EFER..=EFER);
    let mut index = 0;
    while index < COUNTERS.len() {
        trap(&mut map, *COUNTERS[index].start()..=*COUNTERS[index].end());
        index += 1;
    }
    map
}

const fn trap(map: &mut [u8; MAP_BYTES], registers: RangeInclusive<u32>) {
    let mut register = *registers.start();
    while register <= *registers.end() {
        if let Some(bit) = permission(register) {
            map[bit / 8] |= 0b11 << (bit % 8);
        }
        register += 1;
    }
}

/// Where the map of permissions is.
pub fn permissions() -> u64 {
    MAP.0.as_ptr() as u64
}

pub fn read(cpu: &mut Cpu, register: u32) -> Result<u64, Fault> {
    match register {
        APIC_BASE => Ok(cpu.apic_base),
        EFER => Ok(cpu.vmcb.efer & !SVME),
        _ if APIC.contains(&register) => apic::read(cpu, register),
        _ => cpu.pmu.read(register),
    }
}

pub fn write(cpu: &mut Cpu, register: u32, value: u64) -> Result<(), Fault> {
    match register {
        APIC_BASE => cpu.apic_base = value,
        EFER => {
            // Paging decides whether long mode is active; SVM stays on.
            let active = cpu.vmcb.efer & EFER_LONG_MODE_ACTIVE;
            cpu.vmcb.efer = value & !EFER_LONG_MODE_ACTIVE | active | SVME;
        }
        _ if APIC.contains(&register) => apic::write(cpu, register, value)?,
        _ => cpu.pmu.write(register, value)?,
    }
    Ok(())
}
