//! The init server: its logic, tested on the host.
#![no_std]
#![forbid(unsafe_code)]
