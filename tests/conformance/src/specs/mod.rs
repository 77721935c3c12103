//! Each call: how it is made rightly, and what each of its arguments allows. `docs/abi.md` says the same in words.

mod device;
mod ipc;
mod memory;
mod object;
mod process;
mod system;

use ::ipc::abi::Error;

use crate::spec::{Spec, Value};

/// The calls with systematic cases.
pub const ALL: [&[Spec]; 6] = [
    &ipc::SPECS,
    &object::SPECS,
    &memory::SPECS,
    &process::SPECS,
    &device::SPECS,
    &system::SPECS,
];

/// CPUs that a machine can have.
const CPUS_MAX: u64 = 64;
/// The first address that is not canonical.
const NOT_CANONICAL: u64 = 1 << 47;

/// A value that a call takes.
const fn takes(what: &'static str, value: u64) -> Value {
    (what, value, Ok(()))
}

/// A value that is outside what a call allows.
const fn outside(what: &'static str, value: u64) -> Value {
    (what, value, Err(Error::BadArgument))
}

const fn bad_address(what: &'static str, value: u64) -> Value {
    (what, value, Err(Error::BadAddress))
}
