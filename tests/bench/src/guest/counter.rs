//! Counting instructions: the time-stamp counter under `-icount shift=0`.
//!
//! There the counter is the number of instructions that the CPU has executed (and, while it is halted, the nanoseconds until
//! the next timer). A string instruction with a REP prefix counts once for each repetition, so a copy counts as the loop that
//! it stands for. Nothing of this is believed: [`Counter::prove`] runs loops whose instructions are known.

use core::arch::asm;

use sysroot::syscall::rdtsc;

use super::failure::Failure;

/// Readings of which the least is taken, so that no tick is among them.
const READINGS: usize = 16;
/// Turns of the two loops that are compared.
const TURNS: (u64, u64) = (1_000, 4_000);
/// Instructions of a turn.
pub const TURN: u64 = 2;
/// Instructions of a turn of [`ask`].
const ASK: u64 = 4;

/// A counter that was seen to count instructions.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// What it counts when nothing is between two readings.
    overhead: u64,
}

impl Counter {
    /// Compares loops of known length.
    pub fn prove() -> Result<Self, Failure> {
        let least = |body: &dyn Fn()| {
            let bare = Self { overhead: 0 };
            (0..READINGS).map(|_| bare.count(body).0).min().unwrap_or(0)
        };
        let longer = |body: &dyn Fn(u64), instructions: u64| {
            let counted = least(&|| body(TURNS.1)).wrapping_sub(least(&|| body(TURNS.0)));
            let instructions = (TURNS.1 - TURNS.0) * instructions;
            if counted == instructions {
                Ok(())
            } else {
                Err(Failure::NotCounted {
                    instructions,
                    counted,
                })
            }
        };
        longer(&turn, TURN)?;
        // What a hypervisor does for the guest is none of its instructions.
        longer(&ask, ASK)?;
        let nothing = || {
            let start = rdtsc();
            rdtsc() - start
        };
        let overhead = (0..READINGS).map(|_| nothing()).min().unwrap_or(0);
        Ok(Self { overhead })
    }

    /// Instructions that `body` takes, and what it gives.
    #[inline(always)]
    pub fn count<T>(self, body: impl FnOnce() -> T) -> (u64, T) {
        let start = rdtsc();
        let result = body();
        let end = rdtsc();
        ((end - start).saturating_sub(self.overhead), result)
    }
}

/// Executes [`ASK`] instructions so many times, one of which asks the processor, or a hypervisor in its place. At least once.
fn ask(turns: u64) {
    // SAFETY: asks for a leaf that every processor has; RBX, which the compiler keeps for itself, is put back.
    unsafe {
        asm!(
            "mov {rbx}, rbx",
            "2:", "xor eax, eax", "cpuid", "dec {turns}", "jnz 2b",
            "mov rbx, {rbx}",
            rbx = out(reg) _,
            turns = inout(reg) turns.max(1) => _,
            out("eax") _, out("ecx") _, out("edx") _,
            options(nomem, nostack)
        );
    }
}

/// Executes [`TURN`] instructions so many times. At least once.
#[inline(always)]
pub fn turn(turns: u64) {
    // SAFETY: the loop changes nothing but its own register and the flags.
    unsafe {
        asm!("2:", "dec {0}", "jnz 2b", inout(reg) turns.max(1) => _, options(nomem, nostack));
    }
}
