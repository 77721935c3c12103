//! The story of the boot, from the kernel's own page tables on: what machine is this, what does the kernel need on it,
//! what runs first.

mod archive;
mod clock;
mod cpus;
mod find;
mod plan;
pub mod proof;
mod trouble;

use self::archive::Module;
use crate::arch::machine::Machine;
use crate::arch::memory::OutOfMemory;
use crate::arch::percpu::PerCpu;
use crate::arch::start::Boot;
use crate::entry::{join, make_kernel};
use crate::fatal::refuse;
use crate::{arch, log};
use core::sync::atomic::Ordering::Relaxed;
use kcore::base::cpu::CpuId;
use kcore::boot::command_line::{Word, unknown, words};
use kcore::hardware::Hardware;
use kcore::kernel::Kernel;

/// Goes on where [`crate::arch::start`] ends: in the kernel's page tables, on the boot CPU's own stack.
pub fn main(boot: &'static mut Boot) -> ! {
    match run(boot) {
        Ok(cpu) => arch::entry::leave(cpu),
        Err(error) => refuse(format_args!("{error}")),
    }
}

fn run(boot: &'static mut Boot) -> Result<&'static PerCpu, OutOfMemory> {
    let verbose = words(&boot.info.command_line).any(|word| word == Word::Verbose);
    let messages = log::start(&mut boot.memory, verbose)?;
    if let Some(unknown) = unknown(&boot.info.command_line) {
        log::notice(format_args!("{unknown}"));
    }
    let module = archive::find(boot.info.module, &boot.mapped);
    let machine = find::machine(boot)?;
    if let Err(shortage) = plan::check(boot, machine, &module) {
        refuse(format_args!("{shortage}"));
    }
    let cpus = cpus::start(boot, machine)?;
    let mebibytes = boot.ram_bytes.div_ceil(1 << 20);
    log::detail(format_args!("{cpus} cpus, {mebibytes} MiB"));

    let trace = words(&boot.info.command_line).any(|word| word == Word::Trace);
    let trouble = words(&boot.info.command_line).find_map(|word| match word {
        Word::Fail(trouble) => Some(trouble),
        Word::Verbose | Word::Trace => None,
    });
    let pools = plan::pools(boot)?;
    let kernel = make_kernel(plan::parts(boot, machine, messages, pools, cpus, &module)?);
    kernel.tracing.store(trace, Relaxed);
    proof::nmis(kernel, machine);
    proof::counters(kernel, machine);
    let cpu = PerCpu::current();
    if let Some(trouble) = trouble {
        trouble::make(trouble);
    }
    load_init(kernel, cpu.id, module);
    join(cpu);
    for other in 1..cpus {
        machine.kick(CpuId(other));
    }
    Ok(cpu)
}

/// Loads the first program. Not inlined: it needs a page of stack.
#[inline(never)]
fn load_init(kernel: &Kernel<Machine>, cpu: CpuId, module: Module) {
    if let Err(failure) = kernel.start_init(kernel.cpu(cpu), module.base(), module.bytes()) {
        refuse(format_args!("bootfs: {failure}"));
    }
}
