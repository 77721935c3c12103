//! What `./run.sh bench` measures inside the guest. The list of figures and the profile that is reported are also built on the
//! host, which names the figures, holds them to budgets, and makes the same report to compare.
//!
//! The machine counts instructions: under QEMU's `-icount shift=0` the time-stamp counter advances by one with each. The
//! program refuses to run where it does not ([`guest`]). `docs/benchmarks.md` says what each figure includes.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod elf;
pub mod figure;
pub mod samples;
pub mod workload;

#[cfg(target_os = "none")]
pub mod guest;
