//! The first thread's IPC buffer, written as `ipc::abi::message` has it: what a message is made of is put there once, and then
//! sent many times.

use ipc::abi::message::{HANDLES_OFFSET, PAYLOAD_MAX};
use ipc::abi::startup::IPC_BUFFER;
use ipc::abi::{Handle, Rights};

/// Puts a payload into the buffer; bytes that no message can have are left out.
pub fn put(payload: &[u8]) {
    for (offset, &byte) in payload.iter().take(PAYLOAD_MAX).enumerate() {
        // SAFETY: the loader maps the page for the first thread, which this is, and the offset is inside it; no reference to
        // the page exists.
        unsafe {
            (IPC_BUFFER as *mut u8)
                .wrapping_add(offset)
                .write_volatile(byte)
        }
    }
}

/// Adds up the bytes of a payload that came.
#[must_use]
pub fn sum(len: usize) -> u64 {
    let byte = |offset| {
        // SAFETY: as in `put`.
        unsafe {
            (IPC_BUFFER as *const u8)
                .wrapping_add(offset)
                .read_volatile()
        }
    };
    (0..len.min(PAYLOAD_MAX))
        .map(|offset| u64::from(byte(offset)))
        .sum()
}

/// Puts a handle into the first slot, to be copied with these rights.
pub fn put_handle(handle: Handle, rights: Rights) {
    let slot = (IPC_BUFFER as *mut u8)
        .wrapping_add(HANDLES_OFFSET)
        .cast::<[u32; 2]>();
    // SAFETY: as in `put`; the slots are inside the page, and aligned for words.
    unsafe { slot.write_volatile([handle.raw(), rights.bits()]) }
}

/// The handle in the first slot of a message that came.
#[must_use]
pub fn handle() -> Handle {
    let slot = (IPC_BUFFER as *const u8)
        .wrapping_add(HANDLES_OFFSET)
        .cast::<u32>();
    // SAFETY: as in `put_handle`.
    Handle::from_raw(unsafe { slot.read_volatile() })
}
