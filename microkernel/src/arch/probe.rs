//! Model-specific registers that may not be there: an access that faults is an answer.
//!
//! Each instruction that may fault is in a table, with where the code goes on, and the #GP handler looks there first. Only for
//! the boot: the sampling path accesses what has answered here, and never faults.
//!
//! The upper half of RCX, which the instructions ignore, is zeros: QEMU (7.2, `svm_helper.c`) looks in a guest's map of
//! permissions by all of it, and a register is then accessed behind the back of the shim that the tests have.

use core::arch::asm;
use kcore::pmu::{GeneralProtection, Msr};

/// An instruction that may fault, and the one behind it.
#[repr(C)]
struct Fixup {
    at: u64,
    behind: u64,
}

unsafe extern "C" {
    static __fixups_start: Fixup;
    static __fixups_end: Fixup;
}

/// Where code goes on that has faulted here, if it may.
pub fn behind(rip: u64) -> Option<u64> {
    let start = &raw const __fixups_start;
    let bytes = &raw const __fixups_end as usize - start as usize;
    // SAFETY: the linker put the table between these two labels, among the constants; `asm!` below makes its entries.
    let table = unsafe { core::slice::from_raw_parts(start, bytes / size_of::<Fixup>()) };
    let fixup = table.iter().find(|fixup| fixup.at == rip)?;
    Some(fixup.behind)
}

/// Reads a register.
///
/// # Errors
/// The processor does not let it be read.
pub fn read(msr: Msr) -> Result<u64, GeneralProtection> {
    let (low, high): (u32, u32);
    let mut done = 0_u32;
    // SAFETY: reads a register of the performance monitor; if that faults, the handler goes on behind it, and `done` stays 0.
    unsafe {
        asm!(
            "2: rdmsr",
            "mov {done:e}, 1",
            "3:",
            ".pushsection .rodata.fixups, \"a\", @progbits",
            ".balign 8",
            ".quad 2b, 3b",
            ".popsection",
            in("rcx") u64::from(msr.number()),
            out("eax") low,
            out("edx") high,
            done = inout(reg) done,
            options(nomem, nostack, preserves_flags)
        );
    }
    if done == 0 {
        return Err(GeneralProtection);
    }
    Ok(u64::from(high) << 32 | u64::from(low))
}

/// Writes a register.
///
/// # Errors
/// The processor does not take the value.
pub fn write(msr: Msr, value: u64) -> Result<(), GeneralProtection> {
    let mut done = 0_u32;
    // SAFETY: writes a register of the performance monitor, which touches no memory; if that faults, as for `read`.
    unsafe {
        asm!(
            "2: wrmsr",
            "mov {done:e}, 1",
            "3:",
            ".pushsection .rodata.fixups, \"a\", @progbits",
            ".balign 8",
            ".quad 2b, 3b",
            ".popsection",
            in("rcx") u64::from(msr.number()),
            in("eax") value as u32,
            in("edx") (value >> 32) as u32,
            done = inout(reg) done,
            options(nostack, preserves_flags)
        );
    }
    (done != 0).then_some(()).ok_or(GeneralProtection)
}
