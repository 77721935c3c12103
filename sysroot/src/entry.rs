//! Where a program begins and ends.

use core::arch::global_asm;
use core::convert::Infallible;
use core::fmt;

use crate::{println, syscall};

/// What a program says at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitCode(pub u8);

impl ExitCode {
    /// All went well.
    pub const SUCCESS: Self = Self(0);
    /// It did not.
    pub const FAILURE: Self = Self(1);
    /// Wrong arguments.
    pub const USAGE: Self = Self(2);
    /// The kernel or the loader is of another ABI version, or the startup page is damaged.
    pub const BAD_STARTUP: Self = Self(102);
}

/// What `main` may return.
pub trait Termination {
    /// As an exit code.
    fn code(self) -> ExitCode;
}

impl Termination for () {
    fn code(self) -> ExitCode {
        ExitCode::SUCCESS
    }
}

impl Termination for ExitCode {
    fn code(self) -> ExitCode {
        self
    }
}

impl Termination for Result<(), ExitCode> {
    fn code(self) -> ExitCode {
        self.err().unwrap_or(ExitCode::SUCCESS)
    }
}

/// Of a server: it serves until it cannot, and the log gets why.
impl<E: fmt::Display> Termination for Result<Infallible, E> {
    fn code(self) -> ExitCode {
        match self {
            Ok(never) => match never {},
            Err(failure) => {
                println!("{failure}");
                ExitCode::FAILURE
            }
        }
    }
}

/// Ends the process.
// Inlined because the compiler inlines nothing into a function that ends in a call of no return: a program's own `main`
// would be a function apart from the one that `entry` makes.
#[inline(always)]
pub fn exit(code: ExitCode) -> ! {
    loop {
        // The call does not return; if it did, there would be nothing better to do than to try again.
        let _ = syscall::process_exit(code.0.into());
    }
}

/// Makes `main` the program's main function: `sysroot::entry!(main);`.
///
/// `_start` jumps to it under the symbol `main`. It ends the process itself, so that its frame has none behind it and a chain of
/// calls ends at `main`.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        // SAFETY: a program has one `main`: a second one does not link.
        #[unsafe(export_name = "main")]
        extern "C" fn program_main() -> ! {
            $crate::startup::check_version();
            $crate::exit($crate::entry::Termination::code($main()))
        }
    };
}

// Nobody called `main`: the frame pointer and the return address that it finds are zero, and both end a walk. The stack is
// aligned as a function expects it (16 bytes before the return address is pushed; System V ABI, AMD64 supplement, 3.2.2).
// The return address is marked undefined for those who unwind by tables.
global_asm!(
    ".pushsection .text._start,\"ax\",@progbits",
    ".global _start",
    ".type _start,@function",
    "_start:",
    ".cfi_startproc",
    ".cfi_undefined rip",
    "xor ebp, ebp",
    "and rsp, -16",
    "push rbp",
    "jmp main",
    ".cfi_endproc",
    ".size _start, . - _start",
    ".popsection",
);
