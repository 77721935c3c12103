//! Physical memory for tests, hostile on purpose: it refuses what the contract of [`PhysMemory`] forbids, and frames that
//! are free hold bytes that look like present entries.

use super::supply::Supply;
use crate::base::addr::{Frame, PhysAddr};
use crate::hardware::{PhysMemory, PhysWords};
use ipc::abi::Error;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of the first frame: high, so that addresses do not pass for small numbers.
pub const FIRST: u32 = 0x000f_0000;
/// What a free frame is full of: present, writable, for users, and leads outside the fake RAM.
const GARBAGE: u64 = 0x0000_0dea_dbee_f067;

/// Some frames of RAM.
pub struct FakeMemory {
    first: u32,
    words: Vec<AtomicU64>,
}

impl FakeMemory {
    /// `frames` frames from [`FIRST`] on, full of garbage.
    pub fn new(frames: usize) -> Self {
        Self::from(FIRST, frames)
    }
    /// The same, from the frame numbered `first` on.
    pub fn from(first: u32, frames: usize) -> Self {
        let words = (0..frames * 512).map(|_| AtomicU64::new(GARBAGE)).collect();
        Self { first, words }
    }
    /// Fills a frame with garbage.
    pub fn spoil(&self, frame: Frame) {
        (0..512).for_each(|word| self.write(frame.start().offset(word * 8), GARBAGE));
    }
    fn word(&self, at: PhysAddr) -> &AtomicU64 {
        assert!(at.0.is_multiple_of(8), "{at:x?} is not aligned");
        assert!(self.is_ram(at.frame()), "{at:x?} is not RAM");
        &self.words[(at.0 - Frame(self.first).start().0) as usize / 8]
    }
}

impl PhysWords for FakeMemory {
    type Words<'a> = &'a [AtomicU64; 512];

    fn words(&self, frame: Frame) -> Option<&[AtomicU64; 512]> {
        let index = frame.0.checked_sub(self.first)? as usize;
        self.words.get(index * 512..)?.first_chunk()
    }
}

impl PhysMemory for FakeMemory {
    fn read(&self, at: PhysAddr) -> u64 {
        self.word(at).load(Ordering::Acquire)
    }
    fn write(&self, at: PhysAddr, value: u64) {
        self.word(at).store(value, Ordering::Release);
    }
    fn copy(&self, from: PhysAddr, to: PhysAddr, bytes: usize) {
        let mut buffer = vec![0; bytes];
        self.read_bytes(from, &mut buffer);
        self.write_bytes(to, &buffer);
    }
    fn zero(&self, frame: Frame) {
        (0..512).for_each(|word| self.write(frame.start().offset(word * 8), 0));
    }
    fn read_bytes(&self, from: PhysAddr, to: &mut [u8]) {
        for (offset, byte) in (0..).zip(to) {
            let at = from.0 + offset;
            *byte = (self.read(PhysAddr(at & !7)) >> (at % 8 * 8)) as u8;
        }
    }
    fn write_bytes(&self, to: PhysAddr, from: &[u8]) {
        for (offset, &byte) in (0..).zip(from) {
            let (at, shift) = (to.0 + offset, (to.0 + offset) % 8 * 8);
            let word = PhysAddr(at & !7);
            self.write(
                word,
                self.read(word) & !(0xff << shift) | u64::from(byte) << shift,
            );
        }
    }
}

/// Frames of a [`FakeMemory`]; spoils what is given back, as its next owner would.
pub struct FakeSupply<'a> {
    memory: &'a FakeMemory,
    free: Vec<Frame>,
    /// Frames that were taken and not given back.
    pub taken: BTreeSet<Frame>,
}

impl<'a> FakeSupply<'a> {
    /// Supplies `count` frames, from the one numbered `FIRST + first` on.
    pub fn new(memory: &'a FakeMemory, first: u32, count: u32) -> Self {
        let first = FIRST + first;
        Self {
            memory,
            free: (first..first + count).map(Frame).collect(),
            taken: BTreeSet::new(),
        }
    }
    /// Takes all frames but `left` away.
    pub fn starve(&mut self, left: usize) {
        self.free.truncate(left);
    }
}

impl Supply for FakeSupply<'_> {
    fn take(&mut self) -> Result<Frame, Error> {
        let frame = self.free.pop().ok_or(Error::QuotaExceeded)?;
        self.taken.insert(frame);
        Ok(frame)
    }
    fn give(&mut self, frame: Frame) {
        assert!(self.taken.remove(&frame), "{frame:?} given back twice");
        self.memory.spoil(frame);
        self.free.push(frame);
    }
}
