//! A CPU's modes: what is switched on on each of them, and the instructions that only the machine layer may use.

use super::percpu::KERNEL_CS;
use core::arch::asm;
use core::arch::x86_64::{__cpuid_count, _mm_lfence, _rdtsc};
use kcore::base::regs::{USER_CS, USER_SS};
use kcore::boot::features::{self, Features, Missing};
use kcore::pmu::Claims;
use raw_cpuid::{CpuIdReader, CpuIdResult};
use x86_64::VirtAddr;
use x86_64::registers::control::{Cr0, Cr0Flags, Cr4, Cr4Flags};
use x86_64::registers::model_specific::{Efer, EferFlags, LStar, Msr, SFMask, Star};
use x86_64::registers::rflags::RFlags;

unsafe extern "C" {
    fn syscall_entry();
}

const IA32_ARCH_CAPABILITIES: u32 = 0x10a;

/// The processor's own answers.
#[derive(Clone)]
struct Native;

impl CpuIdReader for Native {
    fn cpuid2(&self, leaf: u32, sub: u32) -> CpuIdResult {
        let found = __cpuid_count(leaf, sub);
        CpuIdResult {
            eax: found.eax,
            ebx: found.ebx,
            ecx: found.ecx,
            edx: found.edx,
        }
    }
}

/// What this processor has.
///
/// # Errors
/// The first feature that the kernel cannot do without.
pub fn features() -> Result<Features, Missing> {
    features::check(Native)
}

/// What this CPU claims of its performance monitor.
pub fn monitor_claims() -> Claims {
    Claims::read(Native)
}

/// Whether this processor would need page table isolation, which Sonde does not have.
#[must_use]
pub fn needs_isolation(features: Features) -> bool {
    let capabilities = if features.arch_capabilities {
        // SAFETY: CPUID says that the register exists; reading it changes nothing.
        unsafe { Msr::new(IA32_ARCH_CAPABILITIES).read() }
    } else {
        0
    };
    features::needs_page_table_isolation(features, capabilities)
}

/// Puts this CPU into the state that the kernel and programs run in.
pub fn enable(features: Features) {
    // Write protection holds for the kernel too. With TS set every x87, MMX and SSE instruction raises #NM, which says what it
    // was. EM would fault as well, but with #UD for SSE, which any invalid instruction raises (Intel SDM volume 3A, section 2.5).
    let cr0 = Cr0Flags::PROTECTED_MODE_ENABLE
        | Cr0Flags::MONITOR_COPROCESSOR
        | Cr0Flags::TASK_SWITCHED
        | Cr0Flags::EXTENSION_TYPE
        | Cr0Flags::NUMERIC_ERROR
        | Cr0Flags::WRITE_PROTECT
        | Cr0Flags::PAGING;
    // SAFETY: the kernel uses no FPU and writes no read-only page.
    unsafe { Cr0::write_raw(cr0.bits()) };
    let mut cr4 = Cr4Flags::PHYSICAL_ADDRESS_EXTENSION | Cr4Flags::PAGE_GLOBAL | Cr4Flags::OSFXSR;
    cr4.set(
        Cr4Flags::SUPERVISOR_MODE_EXECUTION_PROTECTION,
        features.smep,
    );
    cr4.set(Cr4Flags::SUPERVISOR_MODE_ACCESS_PREVENTION, features.smap);
    cr4.set(Cr4Flags::USER_MODE_INSTRUCTION_PREVENTION, features.umip);
    // Without it a machine check is a shutdown that says nothing (Intel SDM volume 3, "Machine-Check Architecture").
    cr4.set(Cr4Flags::MACHINE_CHECK_EXCEPTION, features.machine_check);
    // SAFETY: what is set is supported; the kernel's pages are all supervisor pages.
    unsafe { Cr4::write_raw(cr4.bits()) };
    let efer = EferFlags::SYSTEM_CALL_EXTENSIONS | EferFlags::NO_EXECUTE_ENABLE;
    // SAFETY: adds bits to a register whose features were checked; the mode stays.
    unsafe { Efer::update(|flags| *flags |= efer) };
    // The segments that SYSRET loads follow this one: user data, then user code.
    const SYSRET: u16 = USER_SS as u16 - 8;
    const _: () = assert!(SYSRET + 16 == USER_CS as u16);
    // SAFETY: the selectors are those of every CPU's GDT.
    unsafe { Star::write_raw(SYSRET, KERNEL_CS) };
    LStar::write(VirtAddr::from_ptr(syscall_entry as *const u8));
    SFMask::write(
        RFlags::INTERRUPT_FLAG
            | RFlags::DIRECTION_FLAG
            | RFlags::TRAP_FLAG
            | RFlags::ALIGNMENT_CHECK
            | RFlags::NESTED_TASK
            | RFlags::RESUME_FLAG
            | RFlags::IOPL_LOW
            | RFlags::IOPL_HIGH,
    );
}

/// The time-stamp counter, not before earlier instructions are done.
#[must_use]
pub fn tsc() -> u64 {
    // SAFETY: SSE2 was checked for; LFENCE is no SSE instruction to CR0.TS (Intel SDM volume 2, LFENCE).
    unsafe { _mm_lfence() };
    ticks()
}

/// The time-stamp counter, about now: for durations, where the order to a few instructions does not matter.
#[must_use]
pub fn ticks() -> u64 {
    // SAFETY: there is a time-stamp counter, or `features` had refused.
    unsafe { _rdtsc() }
}

/// The stack pointer and the frame pointer of the function that this is inlined into.
#[inline(always)]
#[must_use]
pub fn stack_registers() -> [u64; 2] {
    let (rsp, rbp);
    // SAFETY: copies two registers, which no function uses for anything else: frame pointers are forced.
    unsafe {
        asm!(
            "mov {}, rsp",
            "mov {}, rbp",
            out(reg) rsp,
            out(reg) rbp,
            options(nomem, nostack, preserves_flags)
        );
    }
    [rsp, rbp]
}

/// Waits for ever; NMIs are still taken.
pub fn stop() -> ! {
    loop {
        x86_64::instructions::interrupts::disable();
        x86_64::instructions::hlt();
    }
}
