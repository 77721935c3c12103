//! Gives the kernel performance counters where the emulator has none: loaded in the kernel's place, it loads the kernel from the
//! archive and runs it as a guest, by the emulated instructions of AMD's SVM (AMD64 manual volume 2, chapter 15).
//!
//! The kernel is the one that is shipped, to the byte, and the archive too. What it sees of the machine differs in this:
//!
//! - CPUID and the counters' registers are those of `pmu-model`; a timer of the HPET ends the guest's turn when a counter is due.
//! - So the HPET is the shim's, and no ACPI table tells of it.
//! - The local APIC is an x2APIC, whose registers the shim can trap, in place of an xAPIC, whose instructions it would have to
//!   decode.
//! - Some memory is not RAM: the shim itself, and a page below 1 MiB.
//!
//! Every NMI of the guest's goes through the shim: one that a counter causes, and one that the guest sends. One that comes from
//! elsewhere, as from a button, does not reach it.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![cfg_attr(
    not(target_os = "none"),
    expect(missing_docs, reason = "there is nothing on a host")
)]

#[cfg(not(target_os = "none"))]
fn main() {}

#[cfg(target_os = "none")]
mod acpi;
#[cfg(target_os = "none")]
mod apic;
#[cfg(target_os = "none")]
mod boot;
#[cfg(target_os = "none")]
mod cpu;
#[cfg(target_os = "none")]
mod exit;
#[cfg(target_os = "none")]
mod hpet;
#[cfg(target_os = "none")]
mod kernel;
#[cfg(target_os = "none")]
mod memory;
#[cfg(target_os = "none")]
mod msr;
#[cfg(target_os = "none")]
mod report;
#[cfg(target_os = "none")]
mod start;
#[cfg(target_os = "none")]
mod vmcb;
