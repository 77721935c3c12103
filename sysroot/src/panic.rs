//! The end of a program that found itself wrong: what it says, and where it was.

use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

use ipc::abi::layout::PROGRAM_BASE;

use crate::{ExitCode, backtrace, buffer, eprintln, exit, startup};

/// Set by the first panic; a second one, in the middle of reporting it, ends the program at once.
static PANICKING: AtomicBool = AtomicBool::new(false);

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    if PANICKING.swap(true, Ordering::Relaxed) {
        exit(ExitCode::PANIC);
    }
    let name = startup::name();
    eprintln!("{name}: {info}");
    for address in backtrace::walk(buffer::frame_pointer(), buffer::stack(), buffer::stack_word) {
        eprintln!("  {name}+{:#x}", address.wrapping_sub(PROGRAM_BASE));
    }
    exit(ExitCode::PANIC)
}
