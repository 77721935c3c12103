//! The drivers against a hostile monitor.

mod claims;
mod counter;
mod proof;
