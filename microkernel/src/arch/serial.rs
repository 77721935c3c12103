//! COM1, for the kernel's own messages while it starts and when it ends: written by waiting for room. A program owns the port in
//! between, and what was typed before it came is left for it.

use x86_64::instructions::port::Port;

const BASE: u16 = 0x3f8;
/// Looks at the status before a byte is sent regardless: a port that is not there must not stop the machine.
const PATIENCE: u32 = 100_000;
const ROOM: u8 = 1 << 5;

fn write(offset: u16, value: u8) {
    // SAFETY: COM1's registers touch no memory.
    unsafe { Port::new(BASE + offset).write(value) };
}

fn status() -> u8 {
    // SAFETY: as above; reading the line status only clears error bits.
    unsafe { Port::new(BASE + 5).read() }
}

/// Sets 115,200 bits a second, 8 data bits, interrupts off. The FIFO stays as it is: switching it on empties the receiver,
/// where a byte may wait that was typed before the machine started (PC16550D data sheet, section 8.4).
pub fn enable() {
    const SETTINGS: [(u16, u8); 6] = [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 0x03), (4, 0x03)];
    for (offset, value) in SETTINGS {
        write(offset, value);
    }
}

/// Sends bytes, with a carriage return before each newline.
pub fn send(bytes: &[u8]) {
    for &byte in bytes {
        if byte == b'\n' {
            send_byte(b'\r');
        }
        send_byte(byte);
    }
}

fn send_byte(byte: u8) {
    for _ in 0..PATIENCE {
        if status() & ROOM != 0 {
            break;
        }
        core::hint::spin_loop();
    }
    write(0, byte);
}
