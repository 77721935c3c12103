//! A storm: samples as fast as the machine delivers them, of processes that come and go as fast as they can. Every NMI is accounted for,
//! every record too, and every chain of those processes is one that their code can have.
//!
//! [`code`] is what they run, [`watch`] judges the samples: both are tried on the host. The rest is in `guest`.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod code;
pub mod watch;

#[cfg(target_os = "none")]
pub mod guest;
