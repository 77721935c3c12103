//! The profd server: its logic, tested on the host.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod atlas;
pub mod bytes;
pub mod catalog;
pub mod chain;
pub mod clock;
pub mod collect;
pub mod decode;
pub mod driver;
pub mod encode;
pub mod fold;
pub mod image;
pub mod name;
pub mod notes;
pub mod process;
pub mod profile;
pub mod repair;
pub mod report;
pub mod request;
pub mod resolve;
pub mod rings;
pub mod service;
pub mod session;
pub mod shorten;
pub mod stacks;
pub mod symbols;
pub mod text;
pub mod unwind;
