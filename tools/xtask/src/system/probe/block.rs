//! A CPU's own block and stack in the kernel, as an entry from a program finds them.

use std::ops::Range;

use anyhow::{Context as _, Result};
use ipc::abi::layout::PAGE_SIZE;
use kcore::base::block::STACK_TOP;

use super::{Ram, Registers};

/// Where they are.
#[derive(Clone, Debug)]
pub struct Block {
    at: u64,
    /// The kernel's stack.
    pub stack: Range<u64>,
}

impl Block {
    /// Of a CPU that is at the first instruction of an entry from a program.
    ///
    /// # Errors
    /// If it is not.
    pub fn find(ram: &Ram, at: &Registers) -> Result<Self> {
        let block = at.kernel_gs();
        let top = ram.word_at(at.cr3(), block + STACK_TOP as u64);
        let top = top.context("GS is not that of the kernel")?;
        let mut start = top & !(PAGE_SIZE - 1);
        while ram.physical(at.cr3(), start - PAGE_SIZE).is_some() {
            start -= PAGE_SIZE;
        }
        let stack = start..top;
        Ok(Self { at: block, stack })
    }

    /// The word at this offset, one of [`kcore::base::block`]'s.
    ///
    /// # Errors
    /// If it is not mapped.
    pub fn word(&self, ram: &Ram, at: &Registers, offset: usize) -> Result<u64> {
        let word = ram.word_at(at.cr3(), self.at + offset as u64);
        word.context("the CPU's block is not mapped")
    }
}
