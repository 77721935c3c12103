//! The machine's RAM, which is a file: read while the machine stands still.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use ipc::abi::layout::PAGE_SIZE;
use ipc::abi::profile::{RING_RECORDS, SLOT_WORDS};
use sample_ring::{Geometry, Sample};

/// Entries of a page table are there, and map a page larger than the smallest (Intel SDM volume 3, "4-Level Paging").
const PRESENT: u64 = 1;
const LARGE: u64 = 1 << 7;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// All of it. Addresses are offsets into the file, since it ends below the hole for devices.
#[derive(Debug)]
pub struct Ram {
    file: File,
    size: u64,
}

impl Ram {
    /// Of the machine whose RAM is this file.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).context("no file of RAM")?;
        let size = file.metadata()?.len();
        Ok(Self { file, size })
    }

    /// The word at a physical address, if that is RAM.
    #[must_use]
    pub fn word(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// The physical address of a virtual one, by the tables under this root.
    #[must_use]
    pub fn physical(&self, root: u64, at: u64) -> Option<u64> {
        let mut table = root & ADDRESS;
        for shift in [39, 30, 21, 12] {
            let entry = self.word(table + (at >> shift & 0x1ff) * 8)?;
            if entry & PRESENT == 0 {
                return None;
            }
            if shift == 12 || shift < 39 && entry & LARGE != 0 {
                let inside = (1 << shift) - 1;
                return Some(entry & ADDRESS & !inside | at & inside);
            }
            table = entry & ADDRESS;
        }
        None
    }

    /// The word at a virtual address.
    #[must_use]
    pub fn word_at(&self, root: u64, at: u64) -> Option<u64> {
        self.word(self.physical(root, at)?)
    }

    /// The byte at a virtual address.
    #[must_use]
    pub fn byte_at(&self, root: u64, at: u64) -> Option<u8> {
        let mut byte = [0];
        let physical = self.physical(root, at)?;
        self.file.read_exact_at(&mut byte, physical).ok()?;
        Some(byte[0])
    }

    /// Where the one ring is that a kernel on one CPU has.
    ///
    /// # Errors
    /// If there is none, or there are several.
    pub fn ring(&self) -> Result<Ring> {
        let is_ring = |&at: &u64| {
            let word = |index: usize| self.word(at + 8 * index as u64).unwrap_or_default();
            Geometry::KERNEL.begins_with(word)
        };
        let found: Vec<u64> = (0..self.size)
            .step_by(PAGE_SIZE as usize)
            .filter(is_ring)
            .collect();
        let [start] = found[..] else {
            anyhow::bail!("rings are at {found:x?}, not at one place");
        };
        let mut ring = Ring { start, position: 0 };
        ring.position = ring.head(self)?;
        Ok(ring)
    }
}

/// A reader of the ring. The machine stands still meanwhile, so that nothing is overwritten; what it wrote since the last time is
/// less than a ring holds.
pub struct Ring {
    start: u64,
    position: u64,
}

impl Ring {
    /// Records written since boot.
    ///
    /// # Errors
    /// If it is not RAM.
    pub fn head(&self, ram: &Ram) -> Result<u64> {
        self.word(ram, Geometry::HEAD)
    }

    fn word(&self, ram: &Ram, index: usize) -> Result<u64> {
        let word = ram.word(self.start + 8 * index as u64);
        word.context("the ring is no RAM")
    }

    /// The records written since the last time.
    ///
    /// # Errors
    /// If one is none, or not whole.
    pub fn fresh(&mut self, ram: &Ram) -> Result<Vec<Sample>> {
        let head = self.head(ram)?;
        let first = self.position + 1;
        ensure!(
            head - self.position <= RING_RECORDS as u64,
            "records were overwritten"
        );
        self.position = head;
        (first..=head)
            .map(|sequence| self.record(ram, sequence))
            .collect()
    }

    fn record(&self, ram: &Ram, sequence: u64) -> Result<Sample> {
        let mut words = [0; SLOT_WORDS];
        for (index, word) in (Geometry::KERNEL.slot(sequence)..).zip(&mut words) {
            *word = self.word(ram, index)?;
        }
        ensure!(
            words[0] == sequence,
            "record {} is where {sequence} belongs",
            words[0]
        );
        Ok(Sample::parse(words)?)
    }
}
