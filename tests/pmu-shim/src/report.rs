//! What the shim says: why it gives up, on the serial line, where the tests look; and its record, by a port of its own.

use core::fmt::{self, Write};
use core::panic::PanicInfo;
use ipc::abi::layout::{EXIT_FAILURE, EXIT_PORT};
use pmu_model::record::{self, Mark};
use x86_64::instructions::port::Port;

const SERIAL: u16 = 0x3f8;

/// Writes a byte to the record.
pub fn mark(mark: Mark, cpu: u8) {
    // SAFETY: the port is the debugging console's, or nobody's.
    unsafe { Port::<u8>::new(record::PORT).write(mark.on(cpu)) };
}

struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: the data register of a serial line that QEMU's firmware has set up; it touches no memory.
            unsafe { Port::<u8>::new(SERIAL).write(byte) };
        }
        Ok(())
    }
}

/// Says why, and ends the machine as a failure.
pub fn give_up(why: fmt::Arguments<'_>) -> ! {
    // The serial line takes everything.
    let _ = writeln!(Serial, "pmu-shim: {why}\r");
    // SAFETY: QEMU's exit device, or nobody's.
    unsafe { Port::<u32>::new(EXIT_PORT).write(EXIT_FAILURE) };
    loop {
        x86_64::instructions::hlt();
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    give_up(format_args!("{info}"))
}
