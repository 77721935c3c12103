//! The shell server: sessions and the commands they run. Its logic, tested on the host.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod line;
