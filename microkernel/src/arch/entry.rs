//! Between the stubs and [`crate::entry`]: what the stubs call, and how the kernel is left.

use super::percpu::{PerCpu, offset};
use super::{cpu, image, machine, probe};
use crate::entry;
use core::arch::global_asm;
use core::sync::atomic::Ordering;
use ipc::abi::layout::USER_END;
use kcore::base::regs::{REGS, Reg, SavedRegs, USER_CS, USER_SS, VECTOR_SYSCALL};
use kcore::mem::paging::HALF_END;
use kcore::profile::{Context, Interrupted, interrupts_off};
use kcore::sched::leave::Next;
use x86_64::registers::control::Cr2;

global_asm!(
    include_str!("entry.s"),
    CPU_SELF = const offset::SELF,
    CPU_REGS_END = const offset::REGS_END,
    CPU_RSP0 = const offset::RSP0,
    CPU_SCRATCH = const offset::SCRATCH,
    CPU_STACK_TOP = const offset::STACK_TOP,
    FRAME_R15 = const Reg::R15 as usize * 8,
    FRAME_R14 = const Reg::R14 as usize * 8,
    FRAME_R13 = const Reg::R13 as usize * 8,
    FRAME_R12 = const Reg::R12 as usize * 8,
    FRAME_R11 = const Reg::R11 as usize * 8,
    FRAME_R10 = const Reg::R10 as usize * 8,
    FRAME_R9 = const Reg::R9 as usize * 8,
    FRAME_R8 = const Reg::R8 as usize * 8,
    FRAME_RDI = const Reg::Rdi as usize * 8,
    FRAME_RSI = const Reg::Rsi as usize * 8,
    FRAME_RBP = const Reg::Rbp as usize * 8,
    FRAME_RBX = const Reg::Rbx as usize * 8,
    FRAME_RDX = const Reg::Rdx as usize * 8,
    FRAME_RCX = const Reg::Rcx as usize * 8,
    FRAME_RAX = const Reg::Rax as usize * 8,
    FRAME_VECTOR = const Reg::Vector as usize * 8,
    FRAME_ERROR = const Reg::Error as usize * 8,
    FRAME_RIP = const Reg::Rip as usize * 8,
    FRAME_CS = const Reg::Cs as usize * 8,
    FRAME_BYTES = const REGS * 8,
    USER_CS = const USER_CS,
    USER_SS = const USER_SS,
    USER_END = const USER_END,
    VECTOR_SYSCALL = const VECTOR_SYSCALL,
    syscall = sym syscall,
    interrupt_user = sym interrupt_user,
    interrupt_kernel = sym interrupt_kernel,
    fatal = sym fatal,
    nmi = sym nmi,
    nmi_foreign = sym nmi_foreign,
    options(att_syntax)
);

unsafe extern "C" {
    fn exit_to_user(regs: *const SavedRegs) -> !;
    fn enter_idle(stack_top: u64) -> !;
    fn resume_kernel(regs: *const SavedRegs) -> !;
}

/// Vectors below this are the processor's exceptions.
const EXCEPTIONS: u64 = 32;
const GENERAL_PROTECTION: u64 = 13;

/// The address of a page fault.
#[must_use]
pub fn fault_address() -> u64 {
    Cr2::read_raw()
}

/// What was interrupted, in the registers that the stub saved.
#[derive(Clone, Copy)]
struct Saved<'a> {
    cpu: &'a PerCpu,
    regs: &'a SavedRegs,
}

impl Context for Saved<'_> {
    fn rip(self) -> u64 {
        self.regs.get(Reg::Rip)
    }
    fn rsp(self) -> u64 {
        self.regs.get(Reg::Rsp)
    }
    fn rbp(self) -> u64 {
        self.regs.get(Reg::Rbp)
    }
    fn is_user(self) -> bool {
        self.regs.get(Reg::Cs) & 3 != 0
    }
    fn interrupts_off(self) -> bool {
        interrupts_off(self.regs.get(Reg::Rflags))
    }
    fn whole(self) -> Interrupted {
        let (rip, user) = (self.rip(), self.is_user());
        Interrupted {
            rip,
            rsp: self.rsp(),
            rbp: self.rbp(),
            rflags: self.regs.get(Reg::Rflags),
            rcx: self.regs.get(Reg::Rcx),
            scratch: self.cpu.scratch(),
            entered: self.cpu.entered(),
            user,
            idle: !user && image::is_idle(rip),
        }
    }
}

extern "C" fn syscall(cpu: &'static PerCpu) -> ! {
    entry::syscall(cpu);
    leave(cpu)
}

extern "C" fn interrupt_user(cpu: &'static PerCpu, regs: &'static SavedRegs) -> ! {
    let vector = regs.get(Reg::Vector);
    if vector < EXCEPTIONS {
        entry::fault(cpu, vector as u8, regs.get(Reg::Error), fault_address());
    } else {
        entry::interrupt(cpu, vector as u8, &Saved { cpu, regs }.whole());
    }
    leave(cpu)
}

extern "C" fn interrupt_kernel(frame: &SavedRegs) -> ! {
    let (vector, rip) = (frame.get(Reg::Vector), frame.get(Reg::Rip));
    if vector == GENERAL_PROTECTION
        && let Some(behind) = probe::behind(rip)
    {
        frame.set(Reg::Rip, behind);
        // SAFETY: the registers of code that expects this fault at the instruction that faulted, and finds out behind it. This
        // stack is not used again.
        unsafe { resume_kernel(frame) }
    }
    if vector < EXCEPTIONS || !image::is_idle(rip) {
        if (image::stubs().start..image::stubs().end).contains(&rip) {
            // GS may be the user's here. Nothing but the APIC tells which CPU this is.
            let id = machine::try_machine().map(|machine| machine.local.id());
            if let Some(cpu) = id.and_then(PerCpu::with_apic_id) {
                cpu.set_gs();
            }
        }
        crate::fatal::exception(frame, "exception in the kernel");
    }
    let cpu = PerCpu::current();
    let regs = frame;
    entry::interrupt(cpu, vector as u8, &Saved { cpu, regs }.whole());
    leave(cpu)
}

extern "C" fn fatal(cpu: &'static PerCpu, frame: &SavedRegs) -> ! {
    // It may have come before a stub had changed GS.
    cpu.set_gs();
    crate::fatal::exception(frame, "fatal exception")
}

/// An NMI. It may have come anywhere, so nothing here locks, formats or trusts GS. `frame` holds what the stub saved of the registers,
/// and what the hardware pushed. False if nobody asked for it.
extern "C" fn nmi(cpu: &'static PerCpu, frame: &SavedRegs) -> bool {
    if crate::fatal::is_ending() {
        if crate::fatal::is_ended_by(cpu.id) {
            return true;
        }
        cpu.stopped.store(true, Ordering::Release);
        cpu::stop();
    }
    entry::nmi(cpu, Saved { cpu, regs: frame })
}

/// An NMI that nobody asked for. It ends the machine.
extern "C" fn nmi_foreign(cpu: &'static PerCpu, frame: &SavedRegs) -> ! {
    cpu.set_gs();
    crate::fatal::exception(frame, "NMI that nothing asked for")
}

/// Leaves the kernel: to what should run now, or to wait.
pub fn leave(cpu: &'static PerCpu) -> ! {
    loop {
        let Next::Run(regs) = entry::leave(cpu) else {
            wait(cpu);
        };
        let rip = regs.get(Reg::Rip);
        if rip < HALF_END {
            // SAFETY: interrupts are off; these are registers of a thread, with the user's segments, where they stay for its life. The
            // stack is not used again.
            unsafe { exit_to_user(regs) }
        }
        // The program jumped out of its half, and an interrupt came before the fault of the fetch. So it faults here: IRETQ to a
        // RIP that is not canonical would fault in the kernel (Intel SDM volume 2, IRET). This ends the thread, so the loop ends.
        entry::fetch_fault(cpu, rip);
    }
}

/// Waits for an interrupt, which enters the scheduler.
pub fn wait(cpu: &'static PerCpu) -> ! {
    // SAFETY: the top of this CPU's own kernel stack, of which nothing is used again.
    unsafe { enter_idle(cpu.stack_top()) }
}
