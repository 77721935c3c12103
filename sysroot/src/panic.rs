//! The end of a program that found itself wrong. It says what is wrong, then stops at a breakpoint: the kernel keeps registers
//! and backtrace as for a fault, and who reports them knows the names, which the program does not.

use core::arch::asm;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::{eprintln, startup};

/// Set by the first panic; a second one, in the middle of reporting it, ends the program at once.
static PANICKING: AtomicBool = AtomicBool::new(false);

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    if !PANICKING.swap(true, Ordering::Relaxed) {
        let name = startup::name();
        match info.location() {
            Some(place) => eprintln!("{name}: panicked at {place}: {}", info.message()),
            None => eprintln!("{name}: panicked: {}", info.message()),
        }
    }
    // SAFETY: the kernel ends the process at the breakpoint; if it did not, the next instruction would end it.
    unsafe { asm!("int3", "ud2", options(noreturn)) }
}
