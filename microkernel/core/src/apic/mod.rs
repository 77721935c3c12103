//! Interrupt controllers and the timer they carry: what is written to which register, and when.
//!
//! The registers are behind [`local::LocalBus`] and [`io::IoBus`]. The machines at hand have only one of the two kinds of local
//! APIC; the tests have both, and controllers that misbehave as real ones do.

pub mod edge;
pub mod hpet;
pub mod io;
pub mod local;
pub mod pace;
pub mod timer;

/// Interrupt vectors, declared once. Vectors below 32 are the processor's exceptions.
pub mod vector {
    /// Where the old interrupt controllers' 16 lines are moved to, so that a spurious one is no exception.
    pub const OLD_LINES: u8 = 0x20;
    /// Of global interrupt 0; interrupt `n` has the vector `n` further on.
    pub const LINES: u8 = 0x30;
    const _: () = assert!(ipc::abi::layout::INTERRUPTS == (KICK - LINES) as u32);
    /// Another CPU wants this one to look at its queues.
    pub const KICK: u8 = 0xf0;
    /// The local timer.
    pub const TIMER: u8 = 0xf1;
    /// An error that the local APIC found in its own use.
    pub const ERROR: u8 = 0xf2;
    /// The APIC's answer when an interrupt went away before it was taken. Not acknowledged.
    pub const SPURIOUS: u8 = 0xff;
}
