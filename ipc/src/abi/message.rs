//! The shape of a message: a tag and four words in registers, and a payload and handles in the IPC buffer.
//!
//! Registers of `call`, `reply` and `reply_receive`: words are in `r10`, `r8`, `r9`, `r12`, in and out.

use super::numbered::numbered;

/// Words that travel in registers.
pub const WORDS: usize = 4;
/// Longest payload, in bytes, at offset 0 of the IPC buffer.
pub const PAYLOAD_MAX: usize = 2048;
/// Most handles in one message.
pub const HANDLES_MAX: usize = 4;
/// Bytes of a handle slot: two 32-bit words.
pub const SLOT_BYTES: usize = 8;
/// Offset of the handle slots in the IPC buffer: `HANDLES_MAX` of them.
/// Sender: handle, then `rights to keep | SLOT_MOVE`. Receiver: handle, then its rights.
pub const HANDLES_OFFSET: usize = 4032;
/// Where the handle slots end. Behind them the kernel never writes.
pub const HANDLES_END: usize = HANDLES_OFFSET + SLOT_BYTES * HANDLES_MAX;
/// In a handle slot of a message to be sent: move the handle instead of copying it.
pub const SLOT_MOVE: u32 = 1 << 31;

/// Operation number, payload length and handle count, packed into one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Tag(u64);

impl Tag {
    /// A tag for operation `op`, `len` bytes of payload and `handles` handles.
    #[must_use]
    pub const fn new(op: u16, len: usize, handles: usize) -> Self {
        Self(op as u64 | ((len as u64 & 0xffff) << 16) | ((handles as u64 & 0xf) << 32))
    }
    /// From its register form. Unused bits are ignored.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw & 0xf_ffff_ffff)
    }
    /// Its register form.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }
    /// Operation of a call, or status of a reply; chosen by the protocol.
    #[must_use]
    pub const fn op(self) -> u16 {
        self.0 as u16
    }
    /// Bytes of payload.
    #[must_use]
    pub const fn len(self) -> usize {
        (self.0 >> 16) as u16 as usize
    }
    /// Whether there is no payload.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// Handles in the message.
    #[must_use]
    pub const fn handles(self) -> usize {
        (self.0 >> 32 & 0xf) as usize
    }
}

numbered! {
    /// What a receive returned, in `rdx`.
    pub enum Delivery: u64 {
        /// A call; `rdi` is the badge of the handle that it was made through.
        Call = 0,
        /// Bits of the bound notification, in `rdi`.
        Notification = 1,
        /// The last handle with the badge in `rdi` was closed.
        BadgeClosed = 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_keeps_its_parts() {
        let tag = Tag::new(0xfffe, PAYLOAD_MAX, HANDLES_MAX);
        assert_eq!(
            (tag.op(), tag.len(), tag.handles()),
            (0xfffe, PAYLOAD_MAX, HANDLES_MAX)
        );
        assert_eq!(Tag::from_raw(u64::MAX).raw() >> 36, 0);
    }
}
