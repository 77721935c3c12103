//! The IPC buffer of the first thread, all of it: messages with any handle slots, and a look at whether a call that failed left it alone.

use ipc::abi::message::{HANDLES_OFFSET, SLOT_BYTES};
use ipc::abi::startup::{CONTROL_OFFSET, IPC_BUFFER};
use ipc::abi::{Handle, Rights};

/// Bytes that the kernel may write: all before the control block.
pub const BYTES: usize = CONTROL_OFFSET as usize;

/// Writes to the buffer from an offset on; what is past its end is cut.
pub fn write(offset: usize, bytes: &[u8]) {
    let len = bytes.len().min(BYTES.saturating_sub(offset));
    let place = (IPC_BUFFER as usize + offset) as *mut u8;
    // SAFETY: the page is mapped for writing for as long as the program runs, `len` bytes from the place on are in it, before
    // the control block, and no reference to the page exists, so `bytes` is somewhere else.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), place, len) }
}

/// All of the buffer.
pub fn read() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    // SAFETY: as in `write`, the other way.
    unsafe { core::ptr::copy_nonoverlapping(IPC_BUFFER as *const u8, bytes.as_mut_ptr(), BYTES) }
    bytes
}

/// Puts a handle into a slot of a message to be sent, with flags that may be any.
pub fn attach(slot: usize, handle: Handle, flags: u32) {
    let place = HANDLES_OFFSET + SLOT_BYTES * slot;
    write(place, &handle.raw().to_le_bytes());
    write(place + 4, &flags.to_le_bytes());
}

/// The handle in a slot of a message that came, and its rights.
pub fn attached(slot: usize) -> (Handle, Rights) {
    let bytes = read();
    let word = |at: usize| {
        let place = HANDLES_OFFSET + SLOT_BYTES * slot + at;
        let bytes = bytes
            .get(place..place + 4)
            .and_then(|four| four.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    };
    (
        Handle::from_raw(word(0)),
        Rights::from_bits_truncate(word(4)),
    )
}
