//! The first program: it reads the compiled `system.toml`, starts what that names, gives each program its handles, and
//! watches over all of them.
//!
//! Everything is decided here, over the trait [`Machine`]; `main` only connects it to system calls. docs/programs.md
//! tells how a program comes to life.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod config;
pub mod endpoints;
pub mod events;
pub mod grants;
pub mod image;
mod images;
pub mod launch;
pub mod machine;
pub mod obituary;
pub mod pci;
pub mod restart;
mod running;
pub mod service;
pub mod supervisor;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

pub use machine::Machine;
pub use supervisor::Supervisor;
