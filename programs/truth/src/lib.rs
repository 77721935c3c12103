//! What the programs of this package have in common: the loops that they spend their time in, and the numbers that say how much of it
//! goes where, which the tests read here.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

#[cfg(target_os = "none")]
pub mod init;

/// How deep `truth-levels` calls itself. Each level takes the same time.
pub const LEVELS: u64 = 8;
/// Turns of the server for a call of each of its two clients.
pub const SERVED: [u64; 2] = [28_000, 12_000];
/// Turns of the server while both calls are parked.
pub const APART: u64 = 20_000;
/// Turns of a parent, and of each of its children.
pub const PARENT: u64 = 70_000;
/// As above.
pub const CHILD: u64 = 30_000;
/// Clients of the churn, each with functions of its own.
pub const CLIENTS: usize = 8;
/// Instructions that a program executes around SYSCALL for one call, at most: arguments, results, and what the caller does with them.
pub const AROUND_CALL: u64 = 60;

/// Lets another CPU run where QEMU counts instructions: it runs one CPU at a time, and gives the turn away when that one pauses. Every
/// program does this about once in a millisecond, or a CPU whose turns are used up by its tick gets to nothing else while another is busy. While it waits for its next
/// turn, time goes by; so it does it outside of what is measured.
pub fn let_others_run() {
    core::hint::spin_loop();
}

/// A function for each name, with the same instructions but for one immediate operand, so that they are not merged: a loop of so many
/// turns.
#[macro_export]
macro_rules! loops {
    ($($name:ident $seed:literal,)*) => {
        $(
            /// Takes so many turns.
            #[inline(never)]
            fn $name(turns: u64) -> u64 {
                let mut value = core::hint::black_box($seed);
                for turn in 0..turns {
                    value = core::hint::black_box(value ^ turn);
                }
                value
            }
        )*
    };
}
