//! What an attack is, and how a program carries one out that it is asked for.

use ipc::abi::exit::FaultKind;
use sysroot::{ExitCode, println, startup, syscall};

/// What must become of an attack.
#[derive(Clone, Copy, Debug)]
pub enum Wants {
    /// A page fault with this error code, at the address that RAX has.
    Page(u64),
    /// The same at an address of the kernel's: whether a page is there does not matter.
    Kernel(u64),
    /// A write right below the stack that is used up, to a page that is not mapped.
    Guard,
    /// One of these faults. More than one where manufacturers differ.
    Fault(&'static [FaultKind]),
    /// General protection. QEMU's emulator (7.2) reads the words that such a return takes from the stack as the kernel would, so with
    /// SMAP it is a page fault without the bit of programs, at that stack.
    Segment,
    /// General protection on a processor with UMIP; without, the instruction is allowed, and the attack ends.
    Umip,
    /// It makes attempts, of which each is refused, and ends with their number.
    Refused,
}

/// Something that no program may do.
#[derive(Clone, Copy)]
pub struct Attack {
    /// The promise that it tries to break.
    pub promise: &'static str,
    /// What it does.
    pub name: &'static str,
    /// Does it, with one of the values. Returns how many attempts were refused; where a fault must stop it, it does not return.
    pub act: fn(u64) -> u64,
    /// What it is done with, one after the other: addresses, ports, registers.
    pub values: &'static [u64],
    /// What must become of it.
    pub wants: Wants,
}

impl Attack {
    /// An attack that is done with no value.
    #[must_use]
    pub const fn new(
        promise: &'static str,
        name: &'static str,
        wants: Wants,
        act: fn(u64) -> u64,
    ) -> Self {
        Self {
            promise,
            name,
            act,
            values: &[0],
            wants,
        }
    }
    /// It is done with each of these.
    #[must_use]
    pub const fn with(mut self, values: &'static [u64]) -> Self {
        self.values = values;
        self
    }
}

/// A table of attacks, in parts.
pub type Table = &'static [&'static [Attack]];

/// Carries out the attack with the number and the value that these words say, and ends with what came of it; returns if they say none.
pub fn carry_out(table: Table, number: &str, value: &str) -> ExitCode {
    let attack = number
        .parse()
        .ok()
        .and_then(|number| table.iter().copied().flatten().nth(number));
    let (Some(attack), Ok(value)) = (attack, value.parse()) else {
        println!("{}: NUMBER VALUE of an attack", startup::name());
        return ExitCode::USAGE;
    };
    let refused = (attack.act)(value);
    let _ = syscall::process_exit(refused);
    ExitCode::FAILURE
}
