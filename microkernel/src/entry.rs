//! What each way into the kernel means.

use crate::arch::machine::machine;
use crate::arch::percpu::PerCpu;
use core::sync::atomic::{AtomicU64, Ordering};
use kcore::apic::vector;
use kcore::base::regs::SavedRegs;
use kcore::profile::Interrupted;

/// What a CPU does next.
pub enum Next {
    /// Runs a thread.
    Run(&'static SavedRegs),
    /// Waits.
    Idle,
}

pub static TICKS: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

pub fn syscall(_: &PerCpu) {}
pub fn fault(_: &PerCpu, _: u64, _: u64, _: u64) {}
pub fn interrupt(cpu: &PerCpu, which: u8, at: &Interrupted) {
    let machine = machine();
    match which {
        vector::TIMER => {
            let due = machine.timer_due(cpu);
            machine.local.end_of_interrupt();
            if due.tick {
                let n = TICKS[cpu.id.index()].fetch_add(1, Ordering::Relaxed);
                if n < 3 {
                    crate::log::line(format_args!("tick {n} on {} at {:#x}", cpu.id.0, at.rip));
                }
            }
        }
        vector::KICK => {
            machine.local.end_of_interrupt();
            machine.start_ticking(cpu);
        }
        vector::SPURIOUS => {}
        _ => machine.local.end_of_interrupt(),
    }
}
pub fn leave(_: &PerCpu) -> Next {
    Next::Idle
}
