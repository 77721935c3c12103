//! What the small programs share.
#![no_std]
#![forbid(unsafe_code)]
