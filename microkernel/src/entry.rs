//! What each way into the kernel means: the event, as the kernel's decisions know it.

use crate::arch;
use crate::arch::machine::{Machine, machine};
use crate::arch::percpu::PerCpu;
use crate::boot::proof;
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::exit::{FAULT_FETCH, FAULT_USER};
use ipc::abi::trace::InterruptKind;
use kcore::apic::vector;
use kcore::base::addr::Nanos;
use kcore::hardware::Hardware;
use kcore::kernel::{CpuState, Kernel, Parts};
use kcore::profile::{Context, Interrupted};
use kcore::sched::leave::Next;
use kcore::sched::view::View;
use kcore::trace::Ring;
use spin::Once;

/// The vector of a page fault, the only exception with an address.
const PAGE_FAULT: u8 = 14;

static KERNEL: Once<Kernel<Machine>> = Once::new();

/// Makes the kernel of its parts; in place, since it is larger than a stack should hold twice. Other CPUs join when they
/// are kicked.
#[inline(never)]
pub fn make_kernel(parts: Parts<Machine>) -> &'static Kernel<Machine> {
    let kernel = KERNEL.call_once(|| Kernel::new(parts));
    for state in kernel.cpus {
        if let Some(cpu) = PerCpu::of(state.token.id()) {
            cpu.view.call_once(|| View::new(kernel, state));
        }
    }
    kernel
}

fn kernel() -> &'static Kernel<Machine> {
    KERNEL.get().expect("nothing runs before there is a kernel")
}

fn state(cpu: &PerCpu) -> &'static CpuState {
    kernel().cpu(cpu.id)
}

/// A system call of the current thread.
pub fn syscall(cpu: &PerCpu) {
    kernel().syscall(state(cpu));
}

/// An exception in user mode. `address` is that of a page fault.
pub fn fault(cpu: &PerCpu, vector: u8, error: u64, address: u64) {
    let address = if vector == PAGE_FAULT { address } else { 0 };
    kernel().fault(state(cpu), vector, error, address);
}

/// The current thread would fetch its next instruction from outside the lower half.
pub fn fetch_fault(cpu: &PerCpu, rip: u64) {
    fault(cpu, PAGE_FAULT, FAULT_USER | FAULT_FETCH, rip);
}

/// What a vector says that it is, and the interrupt line, or 0.
const fn kind_of(which: u8) -> (InterruptKind, u32) {
    match which {
        vector::TIMER => (InterruptKind::Timer, 0),
        vector::KICK => (InterruptKind::Kick, 0),
        vector::SPURIOUS | vector::OLD_LINES..vector::LINES => (InterruptKind::Spurious, 0),
        vector::LINES..vector::KICK => (InterruptKind::Line, (which - vector::LINES) as u32),
        _ => (InterruptKind::Error, 0),
    }
}

/// An NMI, which may have interrupted anything: what is called here obeys the rules of the sampling path. False if nothing asked
/// for it.
#[inline]
pub fn nmi(cpu: &PerCpu, at: impl Context) -> bool {
    cpu.view.get().is_some_and(|view| view.nmi(at))
}

/// An interrupt, in user mode or while idle.
pub fn interrupt(cpu: &'static PerCpu, which: u8, interrupted: &Interrupted) {
    if which == vector::KICK && proof::is_on() {
        prove(cpu);
    }
    // Whatever it is about: it may be nothing.
    if let Some(kernel) = KERNEL.get() {
        let (kind, line) = kind_of(which);
        kernel.interrupted(state(cpu), kind, line);
    }
    let machine = machine();
    match which {
        vector::TIMER => {
            let due = machine.timer_due(cpu);
            machine.local.end_of_interrupt();
            if let Some(sample) = due.sample {
                kernel().sample_due(state(cpu), sample);
                if cpu.timer.rest(machine.now()) {
                    kernel().profiler.put_off(cpu.id);
                }
            }
            machine.arm(cpu);
            if let Some(missed) = due.tick {
                kernel().tick(state(cpu), interrupted, missed);
            }
            if due.deadline {
                kernel().timer(state(cpu));
            }
        }
        vector::KICK => {
            machine.local.end_of_interrupt();
            match KERNEL.get() {
                Some(_) if cpu.timer.next() == Nanos::NEVER => join(cpu),
                Some(kernel) => kernel.kicked(state(cpu)),
                None => {}
            }
        }
        // A line that vanished before it was taken: nobody waits for the acknowledgement.
        vector::SPURIOUS | vector::OLD_LINES..vector::LINES => {}
        vector::LINES..vector::KICK => {
            let line = u32::from(which - vector::LINES);
            if machine.delivers(line) {
                kernel().interrupt(state(cpu), line);
            }
            machine.local.end_of_interrupt();
        }
        _ => {
            let errors = machine.local.errors();
            crate::log::keep(format_args!("local APIC error {errors:#x}, vector {which}"));
            machine.local.end_of_interrupt();
        }
    }
}

/// This CPU, which takes no part in the kernel yet, is asked to prove its counter; it then waits to be asked to join.
fn prove(cpu: &'static PerCpu) -> ! {
    let machine = machine();
    machine.local.end_of_interrupt();
    if let Some(kernel) = KERNEL.get() {
        proof::counter(kernel, machine, cpu.id);
    }
    arch::entry::wait(cpu)
}

/// What this CPU did, event by event; `None` if that is not traced.
pub fn traced(cpu: &PerCpu) -> Option<&'static Ring> {
    let kernel = KERNEL.get()?;
    let state = kernel.cpus.get(cpu.id.index())?;
    kernel.tracing.load(Relaxed).then_some(&state.trace)
}

/// This CPU begins to take part in the kernel.
pub fn join(cpu: &PerCpu) {
    let state = state(cpu);
    state
        .load
        .apic_id
        .store(cpu.apic_id.load(Relaxed).into(), Relaxed);
    state
        .load
        .tsc_offset
        .store(cpu.tsc_offset.load(Relaxed) as u64, Relaxed);
    kernel().start_cpu(state);
    machine().start_ticking(cpu);
}

/// What to do after an entry.
pub fn leave(cpu: &PerCpu) -> Next {
    KERNEL
        .get()
        .map_or(Next::Idle, |kernel| kernel.leave(state(cpu)))
}
