//! The sample ring.
#![cfg_attr(not(any(test, loom)), no_std)]
