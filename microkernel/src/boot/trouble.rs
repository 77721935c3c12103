//! Failures on request, by `panic=` on the command line, so that tests see what a failure looks like.

use crate::arch::trouble;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Go on.
    None,
    /// Panic.
    Panic,
    /// Touch an address that is not mapped.
    Fault,
    /// Use more stack than there is.
    Stack,
}

/// What the command line asks for.
pub fn asked_for(command_line: &str) -> Trouble {
    let asked = command_line
        .split(' ')
        .find_map(|word| word.strip_prefix("panic="));
    match asked {
        Some("test") => Trouble::Panic,
        Some("fault") => Trouble::Fault,
        Some("stack") => Trouble::Stack,
        _ => Trouble::None,
    }
}

/// Does it.
pub fn make(trouble: Trouble) {
    match trouble {
        Trouble::None => {}
        Trouble::Panic => panic!("as the command line asks"),
        Trouble::Fault => trouble::fault(),
        Trouble::Stack => trouble::overflow(),
    }
}
