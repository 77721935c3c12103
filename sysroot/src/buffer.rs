//! The calling thread's IPC buffer: the page that the kernel reads and writes during system calls.
//!
//! No reference to the page is ever made: bytes are copied in and out, so the kernel's writes can alias nothing. What one
//! system call left is there until the next call of the same thread, or the next `println`.

use core::arch::asm;
use core::mem::offset_of;

use ipc::abi::message::{HANDLES_MAX, HANDLES_OFFSET, SLOT_MOVE};
use ipc::abi::startup::ControlBlock;
use ipc::abi::{Error, Handle, Rights};
use ipc::proto::Message;
use zerocopy::{FromBytes, IntoBytes};

use crate::OwnedHandle;

/// Bytes that a call may read or write at the start of the buffer.
pub const RECORD_MAX: usize = HANDLES_OFFSET;

/// Where the page is.
pub fn address() -> *mut u8 {
    let address: u64;
    // SAFETY: FS base points at the control block of this thread from its first instruction on (`ipc::abi::startup`,
    // `thread`), and nothing changes the block.
    unsafe {
        asm!("mov {}, fs:[{}]", out(reg) address, const offset_of!(ControlBlock, buffer),
            options(nostack, pure, readonly, preserves_flags));
    }
    address as *mut u8
}

/// Copies bytes to the start of the buffer; those past its end are cut.
pub fn write(bytes: &[u8]) {
    let len = bytes.len().min(RECORD_MAX);
    // SAFETY: the buffer is a mapped, writable page of this thread alone, `len` bytes are inside it, and `bytes` cannot
    // overlap it because no reference to it exists.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), address(), len) }
}

/// Copies bytes from the start of the buffer; at most its size, and the rest of `bytes` stays.
pub fn read(bytes: &mut [u8]) {
    let len = bytes.len().min(RECORD_MAX);
    // SAFETY: as in `write`, the other way.
    unsafe { core::ptr::copy_nonoverlapping(address(), bytes.as_mut_ptr(), len) }
}

/// The record that a call left at the start of the buffer.
pub fn record<T: FromBytes + IntoBytes>() -> T {
    const { assert!(size_of::<T>() <= RECORD_MAX) };
    let mut record = T::new_zeroed();
    read(record.as_mut_bytes());
    record
}

/// A handle slot: inside the page, and aligned as its offset is.
fn slot(index: usize) -> *mut [u32; 2] {
    let slots: *mut [u32; 2] = address().wrapping_add(HANDLES_OFFSET).cast();
    slots.wrapping_add(index % HANDLES_MAX)
}

/// Puts a message into the buffer. Its handles stay in it until the kernel has taken them.
pub fn put(message: &Message<OwnedHandle>) {
    write(&message.bytes);
    for (index, handle) in message.handles.iter().enumerate().take(HANDLES_MAX) {
        let moved = [handle.raw().raw(), Rights::all().bits() | SLOT_MOVE];
        // SAFETY: the slot is inside the page, which is as in `write`.
        unsafe { slot(index).write(moved) }
    }
}

/// Takes the message out of the buffer that a call received, with its tag.
///
/// # Errors
/// `TooLarge` if the tag says more than a message can have, which the kernel does not do.
pub fn take(tag: ipc::abi::Tag, message: &mut Message<OwnedHandle>) -> Result<(), Error> {
    message.op = tag.op();
    message.handles.clear();
    for index in 0..tag.handles() {
        // SAFETY: as in `put`.
        let [raw, _rights] = unsafe { slot(index).read() };
        let handle = OwnedHandle::new(Handle::from_raw(raw));
        message.handles.push(handle).map_err(|_| Error::TooLarge)?;
    }
    message.bytes.clear();
    let resized = message.bytes.resize(tag.len(), 0);
    resized.map_err(|_| Error::TooLarge)?;
    read(&mut message.bytes);
    Ok(())
}
