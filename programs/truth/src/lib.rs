//! What the programs of this package have in common: the loops that they spend their time in, and the numbers that say how much of it
//! goes where, which the tests read here.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

#[cfg(target_os = "none")]
pub mod init;

/// How deep `truth-levels` calls itself. Each level takes the same time.
pub const LEVELS: u64 = 8;
/// Turns of the server for a call of each of its two clients: many against what the client does meanwhile on another CPU, whose
/// turn may be waited for.
pub const SERVED: [u64; 2] = [280_000, 120_000];
/// Turns of the server while both calls are parked.
pub const APART: u64 = 200_000;
/// Turns of a parent, and of each of its children: many against what making and burying a child takes on another CPU.
pub const PARENT: u64 = 1_400_000;
/// As above.
pub const CHILD: u64 = 600_000;
/// Clients of the churn, each with functions of its own.
pub const CLIENTS: usize = 8;
/// Instructions that a program executes around SYSCALL for one call, at most: arguments, results, and what the caller does with them.
pub const AROUND_CALL: u64 = 60;
/// Parts of a whole in which `truth-mix` says its shares.
pub const WHOLE: u64 = 1_000_000;

/// Turns of the loops between two pauses. A prime number: pauses fall on all parts of what repeats after some other number of turns.
const PAUSED_AFTER: u64 = 1999;

/// The turns of a program's loops, which it counts to pause evenly in all of its work.
///
/// Where QEMU counts instructions it runs one CPU at a time, and gives the turn away when that one pauses. While a CPU waits for its next
/// turn, time goes by, and its samples are where it paused. So the pauses are many, and each function of the loops has its share of them.
#[derive(Debug)]
pub struct Turns(u64);

impl Turns {
    /// None yet.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a program makes one")]
    pub const fn new() -> Self {
        Self(PAUSED_AFTER)
    }

    /// One more.
    #[inline(always)]
    pub fn take(&mut self) {
        self.0 -= 1;
        if self.0 == 0 {
            self.0 = PAUSED_AFTER;
            core::hint::spin_loop();
        }
    }
}

/// Numbers that repeat nothing.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// The same sequence each time.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a program makes one")]
    pub const fn new() -> Self {
        Self(1)
    }

    /// The next one, below so much, which is below 2^32.
    pub const fn below(&mut self, end: u64) -> u64 {
        // Knuth's factor for MMIX ("The Art of Computer Programming", volume 2, 3.3.4, table 1); the upper bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 32) * end) >> 32
    }
}

/// A function for each name, with the same instructions but for one immediate operand, so that they are not merged: a loop of so many
/// turns.
#[macro_export]
macro_rules! loops {
    ($($name:ident $seed:literal,)*) => {
        $(
            /// Takes so many turns.
            #[inline(never)]
            fn $name(turns: &mut $crate::Turns, number: u64) -> u64 {
                let mut value = core::hint::black_box($seed);
                for turn in 0..number {
                    turns.take();
                    value = core::hint::black_box(value ^ turn);
                }
                value
            }
        )*
    };
}
