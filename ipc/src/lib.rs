//! The one contract: between the kernel and programs ([`abi`]), between programs (`proto`), and of the files both read
//! at boot ([`bootfs`], [`symtab`]).
//!
//! Nothing here is unsafe and nothing here knows an implementation. The kernel builds it without the feature `proto`, and
//! so without a serializer.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "proto", feature = "name", feature = "archive"))]
extern crate alloc;

pub mod abi;
pub mod backtrace;
pub mod bootfs;
pub mod digest;
#[cfg(feature = "name")]
pub mod name;
#[cfg(feature = "proto")]
pub mod proto;
pub mod symtab;
