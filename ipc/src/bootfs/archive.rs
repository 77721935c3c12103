//! Writes an archive: for the builder, and for tests of those who read one.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::{ALIGNMENT, HEADER_SIZE, MAGIC, PAD, TRAILER, fields};

/// An archive in the making.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    fillers: usize,
}

impl Archive {
    /// Appends a file, after a filler that puts its data on a page boundary.
    pub fn add(&mut self, name: &str, data: &[u8]) {
        let filler = format!("{PAD}{}", self.fillers);
        let fixed = self.bytes.len() + header_len(&filler) + header_len(name);
        let zeros = fixed.next_multiple_of(ALIGNMENT) - fixed;
        self.fillers += 1;
        self.push(&filler, &vec![0; zeros]);
        self.push(name, data);
    }

    /// Ends the archive; returns its bytes.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.push(TRAILER, &[]);
        self.bytes
    }

    /// Appends one entry, wherever its data comes to lie.
    pub(super) fn push(&mut self, name: &str, data: &[u8]) {
        self.bytes.extend(MAGIC);
        for field in fields(name, data) {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(data);
        self.pad();
    }

    /// Names and data end on a multiple of four.
    fn pad(&mut self) {
        let len = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(len, 0);
    }
}

/// Bytes of an entry before its data. Every entry begins on a multiple of four.
fn header_len(name: &str) -> usize {
    (HEADER_SIZE + name.len() + 1).next_multiple_of(4)
}
