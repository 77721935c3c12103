//! Why the guest's turn ended, and what is done about it.

use crate::cpu::{Cpu, Halt};
use crate::msr;
use crate::report::give_up;
use crate::vmcb::{DR6_STEP, code, event};
use core::arch::asm;
use core::arch::x86_64::__cpuid_count;
use pmu_model::cpuid;
use pmu_model::pmu::Fault;

/// Bytes of CPUID, RDMSR and WRMSR, which no compiler gives prefixes.
const INSTRUCTION: u64 = 2;

/// Does what this turn's end asks for.
pub fn handle(cpu: &mut Cpu) {
    match cpu.vmcb.exit_code {
        // The guest goes on halting, unless it gets one of its own.
        code::NMI => {
            if let Some(Halt { rip }) = cpu.halt
                && !cpu.nmis.is_due()
            {
                cpu.vmcb.rip = rip;
            }
        }
        code::INTERRUPT => cpu.halt = None,
        code::HLT => cpu.halt = Some(Halt { rip: cpu.vmcb.rip }),
        code::CPUID => cpuid(cpu),
        code::MSR => {
            let access = match cpu.vmcb.exit_info {
                0 => read(cpu),
                _ => write(cpu),
            };
            match access {
                Ok(()) => pass(cpu),
                Err(Fault) => cpu.vmcb.event = event::GENERAL_PROTECTION,
            }
        }
        code::IRET => cpu.nmis.at_iret(),
        code::DEBUG => {
            cpu.nmis.stepped();
            cpu.vmcb.dr6 &= !DR6_STEP;
        }
        code::SVM_FIRST..=code::SVM_LAST => cpu.vmcb.event = event::INVALID_OPCODE,
        code::SHUTDOWN => shut_down(),
        other => give_up(format_args!(
            "cpu {}: exit {other:#x} at {:#x}",
            cpu.id, cpu.vmcb.rip
        )),
    }
}

fn cpuid(cpu: &mut Cpu) {
    let native = |leaf, sub| {
        let found = __cpuid_count(leaf, sub);
        [found.eax, found.ebx, found.ecx, found.edx]
    };
    let (leaf, sub) = (cpu.vmcb.rax as u32, cpu.registers.rcx as u32);
    let answer = cpuid::answer(cpu.config.setup, leaf, sub, native);
    let [eax, ebx, ecx, edx] = answer.map(u64::from);
    cpu.vmcb.rax = eax;
    cpu.registers.rbx = ebx;
    cpu.registers.rcx = ecx;
    cpu.registers.rdx = edx;
    pass(cpu);
}

/// The guest has executed an instruction that the shim did for it: one, also where all else that the shim does is hidden.
fn pass(cpu: &mut Cpu) {
    cpu.vmcb.rip += INSTRUCTION;
    cpu.vmcb.tsc_offset = cpu.vmcb.tsc_offset.wrapping_add(cpu.registers.hidden & 1);
}

fn read(cpu: &mut Cpu) -> Result<(), Fault> {
    let value = msr::read(cpu, cpu.registers.rcx as u32)?;
    cpu.vmcb.rax = value & u64::from(u32::MAX);
    cpu.registers.rdx = value >> 32;
    Ok(())
}

fn write(cpu: &mut Cpu) -> Result<(), Fault> {
    let low = cpu.vmcb.rax & u64::from(u32::MAX);
    let value = cpu.registers.rdx << 32 | low;
    msr::write(cpu, cpu.registers.rcx as u32, value)
}

/// The guest could not even deliver a double fault: this machine does as it does.
fn shut_down() -> ! {
    // SAFETY: a breakpoint whose gate is not present, for want of any, ends the machine; nothing comes after.
    unsafe { asm!("lidt [{}]", "int3", "ud2", in(reg) &[0_u16; 5], options(noreturn)) }
}
