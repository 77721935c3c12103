//! Code of the images as instructions.

use std::ops::Range;

use anyhow::{Context as _, Result};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

use crate::build::elf::{self, Function};

/// Bits of code that is decoded.
const BITS: u32 = 64;
/// Bytes from a vector's stub to the next (`entry.s`).
const VECTOR_STUB: u64 = 16;

/// The instructions of code that begins at an address.
#[must_use]
pub fn decoder(code: &[u8], address: u64) -> Decoder<'_> {
    Decoder::with_ip(BITS, code, address, DecoderOptions::NONE)
}

/// The instructions of a function of a file.
///
/// # Errors
/// If the file is not ELF, or does not hold it.
pub fn instructions(elf: &[u8], function: &Function) -> Result<Vec<Instruction>> {
    let code = elf::code(elf, function)?;
    Ok(decoder(code, function.address).into_iter().collect())
}

/// Where a vector's stub is, of those that begin here.
#[must_use]
pub const fn vector_stub(first: u64, vector: u8) -> Range<u64> {
    let start = first + vector as u64 * VECTOR_STUB;
    start..start + VECTOR_STUB
}

/// The kernel's functions.
pub struct Kernel {
    elf: Vec<u8>,
    functions: Vec<Function>,
}

impl Kernel {
    /// Of the kernel's file.
    ///
    /// # Errors
    /// If it is not ELF.
    pub fn new(elf: Vec<u8>) -> Result<Self> {
        let functions = elf::functions(&elf)?;
        Ok(Self { elf, functions })
    }

    /// Where a function is.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn span(&self, name: &str) -> Result<Range<u64>> {
        self.find(name, |function| function == name)
    }

    /// Where a function of Rust's is, whose mangled name ends so.
    ///
    /// # Errors
    /// If there is none.
    pub fn rust(&self, end: &str) -> Result<Range<u64>> {
        self.find(end, |function| function.ends_with(end))
    }

    fn find(&self, name: &str, is_it: impl Fn(&str) -> bool) -> Result<Range<u64>> {
        let mut functions = self.functions.iter();
        let found = functions.find(|function| is_it(&function.name));
        let found = found.with_context(|| format!("the kernel has no `{name}`"))?;
        Ok(found.range())
    }

    /// The stub of a vector.
    ///
    /// # Errors
    /// If there are no such stubs.
    pub fn vector(&self, vector: u8) -> Result<Range<u64>> {
        Ok(vector_stub(self.span("vector_stubs")?.start, vector))
    }

    /// What kind of instruction begins here.
    ///
    /// # Errors
    /// If it is in no function.
    pub fn mnemonic(&self, at: u64) -> Result<Mnemonic> {
        let mut functions = self.functions.iter();
        let function = functions.find(|function| function.range().contains(&at));
        let function = function.with_context(|| format!("{at:#x} is in no function"))?;
        let first = self
            .instructions(at..function.range().end)?
            .into_iter()
            .next();
        Ok(first
            .with_context(|| format!("no code at {at:#x}"))?
            .mnemonic())
    }

    /// The first instruction of this kind in a function.
    ///
    /// # Errors
    /// If there is none.
    pub fn first(&self, name: &str, mnemonic: Mnemonic) -> Result<u64> {
        let instructions = self.instructions(self.span(name)?)?;
        let mut found = instructions.iter().filter(|it| it.mnemonic() == mnemonic);
        let found = found
            .next()
            .with_context(|| format!("no {mnemonic:?} in `{name}`"))?;
        Ok(found.ip())
    }

    /// The instructions of a part of it.
    ///
    /// # Errors
    /// If it is not there.
    pub fn instructions(&self, span: Range<u64>) -> Result<Vec<Instruction>> {
        let part = Function {
            address: span.start,
            size: span.end - span.start,
            name: String::new(),
        };
        instructions(&self.elf, &part)
    }
}
