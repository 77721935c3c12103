//! Messages of the kernel.

use crate::arch::serial;
use core::fmt::{self, Arguments, Write};
use spin::mutex::TicketMutex;

struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        serial::send(text.as_bytes());
        Ok(())
    }
}

static SERIAL: TicketMutex<Serial> = TicketMutex::new(Serial);

/// Prints a line.
pub fn line(text: Arguments<'_>) {
    // Writing to a serial line does not fail.
    let _ = writeln!(SERIAL.lock(), "{text}");
}

/// Prints a line without waiting for anyone: when the machine is ending.
pub fn raw_line(text: Arguments<'_>) {
    // As above.
    let _ = writeln!(Serial, "{text}");
}
