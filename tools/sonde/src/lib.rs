//! Asks a machine from elsewhere, and loads its network: what the program `sonde` is made of.
#![forbid(unsafe_code)]

mod address;
mod cli;
mod load;

pub use cli::{Cli, NO_ANSWER};
