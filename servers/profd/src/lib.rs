//! The profd server: its logic, tested on the host.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod driver;
pub mod image;
pub mod name;
pub mod process;
pub mod reader;
pub mod record;
pub mod repair;
pub mod symbols;
pub mod unwind;
pub mod atlas;
pub mod catalog;
pub mod chain;
pub mod fold;
pub mod profile;
pub mod resolve;
pub mod notes;
pub mod report;
pub mod request;
pub mod shorten;
pub mod stacks;
pub mod text;
pub mod bytes;
pub mod clock;
pub mod collect;
pub mod decode;
pub mod encode;
pub mod session;
