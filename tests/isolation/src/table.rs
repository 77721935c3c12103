//! All attacks, by who carries them out.

use crate::attack::Table;
use crate::{authority, flags, handles, instructions, memory};

/// Those of a program that was given nothing.
pub const INTRUDER: Table = &[
    memory::ATTACKS,
    instructions::ATTACKS,
    flags::ATTACKS,
    handles::ATTACKS,
    authority::WITHOUT,
];

/// Those of one that has the profiling driver, the boot archive, and profd to call.
pub const HOLDER: Table = &[authority::WITH];
