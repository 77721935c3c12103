//! Asks a machine from elsewhere, and loads its network: what the program `sonde` is made of.
#![forbid(unsafe_code)]

mod access;
mod address;
mod cli;
mod exec;
mod folded;
mod link;
mod load;
mod output;
mod ping;
mod profile;
mod shell;
mod signals;
mod target;
mod trouble;

pub use cli::{Cli, NO_ANSWER};
