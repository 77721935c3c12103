//! Failures on request, by `panic=` on the command line.

use crate::arch::trouble;
use kcore::boot::command_line::Trouble;

/// Fails in this way.
pub fn make(trouble: Trouble) {
    match trouble {
        Trouble::Panic => panic!("as the command line asks"),
        Trouble::Fault => trouble::fault(),
        Trouble::Stack => trouble::overflow(),
    }
}
