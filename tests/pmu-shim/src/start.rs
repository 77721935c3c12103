//! The steps into Rust and into the guest, which are assembly; and what they need to know.

use crate::vmcb::Vmcb;
use core::arch::global_asm;
use pmu_model::CPUS_MAX;

/// Page below 1 MiB where CPUs start. Nothing is there once the firmware is done.
pub const TRAMPOLINE: u64 = 0x8000;
/// Bytes of a CPU's stack: some pages, which its control block is handed on through.
const STACK: usize = 64 << 10;
/// Bits 16 to 31 of where the shim is linked (`shim.ld`).
const BASE_HIGH: u16 = 0xe00;
/// Instructions of `run_guest` that neither reading of the time-stamp counter in it has counted. The program `bench` finds out if this is
/// wrong.
const OWN_INSTRUCTIONS: u64 = 26;

global_asm!(
    include_str!("start.s"),
    TRAMPOLINE = const TRAMPOLINE,
    STACK = const STACK,
    CPUS = const CPUS_MAX,
    BASE_HIGH = const BASE_HIGH,
    OWN_INSTRUCTIONS = const OWN_INSTRUCTIONS,
    TSC_OFFSET = const core::mem::offset_of!(Vmcb, tsc_offset),
    boot = sym crate::boot::boot,
    again = sym crate::cpu::again,
    options(att_syntax)
);

/// Registers of the guest that its control block does not hold, in the order that `start.s` knows.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Registers {
    pub rcx: u64,
    pub rdx: u64,
    pub rbx: u64,
    pub rbp: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub r8_to_r15: [u64; 8],
    /// Time-stamp counter at the last exit.
    pub left: u64,
    /// All ones if what passes between two turns is to be hidden from the guest's time-stamp counter, else 0.
    pub hidden: u64,
}

unsafe extern "C" {
    static trampoline_start: u8;
    static trampoline_end: u8;
    static __shim_start: u8;
    static __shim_end: u8;
    /// Safe to call: it lets in an NMI, whose handler does nothing.
    pub safe fn take_nmi();
    /// Runs the guest that both describe until it exits.
    ///
    /// # Safety
    /// The control block must be one that SVM accepts, and give the guest no way to the shim's memory that it takes.
    pub unsafe fn run_guest(registers: &mut Registers, vmcb: &mut Vmcb);
}

/// Where the shim lies.
pub fn shim() -> core::ops::Range<u64> {
    &raw const __shim_start as u64..&raw const __shim_end as u64
}

/// Puts the trampoline into its page.
pub fn install_trampoline() {
    let start = &raw const trampoline_start;
    let bytes = &raw const trampoline_end as usize - start as usize;
    // SAFETY: from the shim's own code into a page that the guest does not get and that is not used any more by whoever
    // ran before.
    unsafe { core::ptr::copy_nonoverlapping(start, TRAMPOLINE as *mut u8, bytes) };
}
