//! NMIs on a CPU that is just starting. No source of the kernel's sends one there, so each is foreign, and ends the machine with
//! a dump of the registers: which takes a handler that is there, with its stack, and finds the CPU's block.
//!
//! To try every instruction in one machine, the debugger port answers the stub in the place of `nmi` that the NMI was asked for; then the
//! stub has to come back with every register as it was. Once the answer is left as it is.

use anyhow::{Context as _, Result, ensure};
use iced_x86::Mnemonic;

use crate::qemu::{PANIC, debug_exit};
use crate::test::{Context, Verdict};

use super::super::disassembly::Kernel;
use super::super::probe::{Registers, Reset};

/// The CPU that starts. QEMU numbers APICs as CPUs.
const STARTING: u8 = 1;
/// Instructions from a CPU's first one in the kernel to where it waits, and far more.
const STEPS: usize = 100_000;
/// Where the hardware pushes RIP, and where above that the top of the stack is, which has the CPU's block.
const PUSHED_RIP: u64 = 0;
const TOP: u64 = 5 * 8;

/// From the instruction behind the LIDT on to where the CPU has said that it is up and is asked for the time.
pub fn survives(context: &Context<'_>) -> Verdict {
    let image = context.image()?;
    let kernel = Kernel::new(std::fs::read(&image.kernel)?)?;
    let mut machine = Reset::of(image, 2)?;
    machine.remote.run_to(&[kernel.span("ap_entry")?.start])?;
    let before = step_to(&kernel, &mut machine, Mnemonic::Lidt)?;
    machine.remote.step()?;
    let mut hit = 0;
    for _ in 0..STEPS {
        let at = machine.remote.registers()?;
        land(&kernel, &mut machine, &at).with_context(|| format!("at {:#x}", at.rip()))?;
        hit += 1;
        // It waits to be asked for the time, or was asked already.
        if matches!(
            kernel.mnemonic(at.rip())?,
            Mnemonic::Pause | Mnemonic::Rdtsc
        ) {
            break;
        }
        machine.remote.step()?;
    }
    ensure!(hit < STEPS, "it never waits");
    eprintln!("{before} instructions before the handler is there, {hit} NMIs from there on");
    machine.bus.send_nmi_to(STARTING)?;
    machine.remote.detach()?;
    machine.guest.expect_exit(debug_exit(PANIC))?;
    let said = machine.guest.transcript();
    let dump = "panic: NMI that nothing asked for: vector 2 error 0x0 address 0x0 (cpu 1)";
    ensure!(said.contains(dump), "no {dump:?} in:\n{said}");
    Ok(())
}

/// Without a handler it is a triple fault, which resets the machine, and nothing is said.
pub fn resets(context: &Context<'_>) -> Verdict {
    let image = context.image()?;
    let kernel = Kernel::new(std::fs::read(&image.kernel)?)?;
    let mut machine = Reset::of(image, 2)?;
    machine.remote.run_to(&[kernel.span("ap_entry")?.start])?;
    machine.bus.send_nmi_to(STARTING)?;
    machine.remote.detach()?;
    // With `-no-reboot` QEMU ends well at a reset.
    machine.guest.expect_exit(0)?;
    let said = machine.guest.transcript();
    ensure!(!said.contains("panic"), "{said}");
    Ok(())
}

/// Steps to the next instruction of this kind; says how many were before it.
fn step_to(kernel: &Kernel, machine: &mut Reset, mnemonic: Mnemonic) -> Result<usize> {
    for steps in 0..STEPS {
        if kernel.mnemonic(machine.remote.registers()?.rip())? == mnemonic {
            return Ok(steps);
        }
        machine.remote.step()?;
    }
    anyhow::bail!("no {mnemonic:?} in {STEPS} instructions")
}

/// Has an NMI interrupt the next instruction: the stub finds the CPU's block, nobody has asked for it, and if somebody had, all
/// would be as it was.
fn land(kernel: &Kernel, machine: &mut Reset, at: &Registers) -> Verdict {
    let Reset { remote, bus, .. } = machine;
    bus.send_nmi_to(STARTING)?;
    let entry = remote.run_to(&[kernel.span("nmi_entry")?.start])?;
    let pushed = remote.read(entry.rsp() + PUSHED_RIP)?;
    ensure!(pushed == at.rip(), "{pushed:#x} was interrupted");
    let block = remote.read(entry.rsp() + TOP)?;
    let own = remote.read(block)?;
    ensure!(own == block, "no block at {block:#x}, but {own:#x}");
    let answer = kernel.first("nmi_entry", Mnemonic::Test)?;
    let answered = remote.run_to(&[answer])?;
    ensure!(answered.rax() & 0xff == 0, "somebody has asked for it");
    remote.set_rax(1)?;
    let end = remote.run_to(&[kernel.first("nmi_entry", Mnemonic::Iretq)?])?;
    remote.step()?;
    let mut now = remote.registers()?;
    if now == end {
        // The CPU that starts this one sent the second SIPI meanwhile, which does nothing.
        remote.step()?;
        now = remote.registers()?;
    }
    ensure!(now == *at, "an NMI changed {at:x?} to {now:x?}");
    Ok(())
}
