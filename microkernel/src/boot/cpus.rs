//! Brings up the other CPUs, and numbers those that come.

use crate::arch::machine::Machine;
use crate::arch::memory::OutOfMemory;
use crate::arch::percpu::PerCpu;
use crate::arch::smp::{self, Trampoline};
use crate::arch::start::Boot;
use crate::log::notice;
use core::sync::atomic::Ordering;
use kcore::base::cpu::{CPUS_MAX, CpuId};

/// Starts the other CPUs; they then wait for the kernel. Gives how many run in all, and the memory back that only starting
/// needs.
///
/// # Errors
/// When there is no memory for their stacks.
#[inline(never)]
pub fn start(boot: &mut Boot, machine: &Machine) -> Result<u8, OutOfMemory> {
    let mut cpus = 1;
    let Some(trampoline) = Trampoline::new(&mut boot.memory, &boot.mapper) else {
        notice(format_args!("no memory below 1 MiB: only one cpu is used"));
        return Ok(cpus);
    };
    let own = PerCpu::current().apic_id.load(Ordering::Relaxed);
    for &apic_id in machine.madt.cpus.iter().filter(|&&id| id != own) {
        if usize::from(cpus) == CPUS_MAX {
            break;
        }
        if !machine.local.reaches(apic_id) {
            notice(format_args!(
                "the cpu with APIC id {apic_id} is out of reach"
            ));
            continue;
        }
        let (memory, mapper) = (&mut boot.memory, &boot.mapper);
        match smp::start(machine, memory, mapper, &trampoline, CpuId(cpus), apic_id)? {
            Some(offset) => {
                if !offset.may_be_zero() {
                    notice(format_args!(
                        "cpu {cpus}: its time-stamp counter is {} ticks off, within {}",
                        offset.ticks, offset.bound
                    ));
                }
                cpus += 1;
            }
            None => notice(format_args!(
                "the cpu with APIC id {apic_id} does not start"
            )),
        }
    }
    if machine.madt.cpus_left_out > 0 {
        notice(format_args!(
            "{} more cpus than the {CPUS_MAX} that Sonde runs",
            machine.madt.cpus_left_out
        ));
    }
    trampoline.finish(&mut boot.memory);
    Ok(cpus)
}
