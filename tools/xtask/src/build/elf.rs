//! What the builder asks of an ELF file.

use std::ops::Range;

use anyhow::{Context, Result};
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

/// The build-id, in hexadecimal.
///
/// # Errors
/// If the file is not ELF or has none.
pub fn build_id(elf: &[u8]) -> Result<String> {
    let file = object::File::parse(elf)?;
    let id = file
        .build_id()?
        .context("no build-id: the link script must keep it")?;
    Ok(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Where the loaded image ends, as a physical address.
///
/// # Errors
/// If the file is not 64-bit ELF.
pub fn physical_end(elf: &[u8]) -> Result<u64> {
    let header = FileHeader64::<Endianness>::parse(elf)?;
    let endian = header.endian()?;
    let loaded = header
        .program_headers(endian, elf)?
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_LOAD)
        .map(|segment| {
            segment
                .p_paddr(endian)
                .saturating_add(segment.p_memsz(endian))
        });
    Ok(loaded.max().unwrap_or(0))
}

/// A piece of code with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Where it starts.
    pub address: u64,
    /// Bytes of code.
    pub size: u64,
    /// As the linker knows it.
    pub name: String,
}

impl Function {
    /// Where its code is.
    #[must_use]
    pub const fn range(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.size)
    }
}

/// Every named piece of code, sorted by address, one for an address. Labels of assembly, which have no size, reach
/// to the next name or to the end of their section.
///
/// # Errors
/// If the file is not ELF.
pub fn functions(elf: &[u8]) -> Result<Vec<Function>> {
    let file = object::File::parse(elf)?;
    let mut found = Vec::new();
    for section in file
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
    {
        let mut functions: Vec<Function> = file
            .symbols()
            .filter(|symbol| symbol.section_index() == Some(section.index()))
            .filter(|symbol| {
                matches!(
                    symbol.kind(),
                    SymbolKind::Text | SymbolKind::Unknown | SymbolKind::Label
                )
            })
            .filter_map(|symbol| {
                Some(Function {
                    address: symbol.address(),
                    size: symbol.size(),
                    name: symbol
                        .name()
                        .ok()
                        .filter(|name| !name.is_empty())?
                        .to_owned(),
                })
            })
            .collect();
        // Of several names of one address, the one that knows its size.
        functions.sort_by(|a, b| (a.address, b.size, &a.name).cmp(&(b.address, a.size, &b.name)));
        functions.dedup_by_key(|function| function.address);
        let end = section.address() + section.size();
        let next: Vec<u64> = functions
            .iter()
            .skip(1)
            .map(|f| f.address)
            .chain([end])
            .collect();
        for (function, next) in functions.iter_mut().zip(next) {
            if function.size == 0 {
                function.size = next.saturating_sub(function.address);
            }
        }
        found.extend(functions.into_iter().filter(|function| function.size > 0));
    }
    found.sort_by_key(|function| function.address);
    Ok(found)
}

/// The bytes of a function.
///
/// # Errors
/// If the file is not ELF, or does not hold it.
pub fn code<'a>(elf: &'a [u8], function: &Function) -> Result<&'a [u8]> {
    let file = object::File::parse(elf)?;
    let (address, size) = (function.address, function.size);
    let mut sections = file.sections();
    let code = sections.find_map(|section| section.data_range(address, size).ok().flatten());
    code.with_context(|| format!("no code at {address:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test program itself: an ELF file that is always at hand.
    fn own_image() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn functions_are_sorted_and_do_not_repeat() {
        let functions = functions(&own_image()).unwrap();
        assert!(functions.is_sorted_by(|a, b| a.address < b.address));
        assert!(functions.iter().all(|function| function.size > 0));
        let own = "functions_are_sorted_and_do_not_repeat";
        assert!(functions.iter().any(|function| function.name.contains(own)));
    }

    #[test]
    fn what_is_not_elf_is_refused() {
        assert!(build_id(b"#!/bin/sh").is_err());
        assert!(functions(b"").is_err());
    }
}
