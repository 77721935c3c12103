//! The functions of an image, by address. Built once for an image; names are read from the file when they are wanted.

use alloc::vec::Vec;

use object::LittleEndian;
use object::elf::{FileHeader64, SHF_EXECINSTR, STB_GLOBAL, STT_FUNC, STT_NOTYPE, Sym64};
use object::read::elf::{SectionHeader, SectionTable, Sym, SymbolTable};

type Elf = FileHeader64<LittleEndian>;

/// Number of a function in its image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SymbolId(u32);

/// A function.
#[derive(Clone, Copy, Debug)]
struct Function {
    start: u64,
    size: u32,
    /// Index in the file's symbol table.
    entry: u32,
}

/// Functions sorted by address; no two begin at the same one.
#[derive(Debug)]
pub struct Symbols<'a> {
    functions: Vec<Function>,
    table: SymbolTable<'a, Elf>,
}

impl<'a> Symbols<'a> {
    /// Collects the functions of an image: typed ones, and labels of assembly that lie in no typed one.
    ///
    /// # Errors
    /// The symbol table is damaged.
    pub(crate) fn parse(
        data: &'a [u8],
        sections: &SectionTable<'a, Elf>,
    ) -> Result<Self, object::Error> {
        let table = sections.symbols(LittleEndian, data, object::elf::SHT_SYMTAB)?;
        let mut found = Vec::new();
        for (index, symbol) in table.enumerate() {
            let Some(limit) = code_limit(symbol, sections) else {
                continue;
            };
            // The best symbol of an address sorts first.
            let rank = (
                symbol.st_type() != STT_FUNC,
                symbol.st_size(LittleEndian) == 0,
                symbol.st_bind() != STB_GLOBAL,
            );
            found.push((
                symbol.st_value(LittleEndian),
                rank,
                index.0 as u32,
                symbol.st_size(LittleEndian),
                limit,
            ));
        }
        found.sort_unstable();
        found.dedup_by_key(|&mut (start, ..)| start);
        let mut functions: Vec<Function> = Vec::with_capacity(found.len());
        let mut typed_end = 0;
        for (position, &(start, (label, ..), entry, size, limit)) in found.iter().enumerate() {
            if label && start < typed_end {
                continue;
            }
            let next = found
                .get(position + 1)
                .map_or(limit, |&(next, ..)| next.min(limit));
            let size = if size == 0 {
                next - start
            } else {
                size.min(limit - start)
            };
            if !label {
                typed_end = start + size;
            }
            functions.push(Function {
                start,
                size: u32::try_from(size).unwrap_or(u32::MAX),
                entry,
            });
        }
        Ok(Self { functions, table })
    }

    /// The function that holds this address of the file, and how far into it the address is.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<(SymbolId, u64)> {
        let after = self
            .functions
            .partition_point(|function| function.start <= address);
        let index = after.checked_sub(1)?;
        let offset = address - self.functions[index].start;
        (offset < self.functions[index].size.into()).then_some((SymbolId(index as u32), offset))
    }

    /// Address at which a function begins.
    #[must_use]
    pub fn start(&self, symbol: SymbolId) -> u64 {
        self.functions[symbol.0 as usize].start
    }

    /// Its name as in the file; empty if the file's strings are damaged.
    #[must_use]
    pub fn raw_name(&self, symbol: SymbolId) -> &'a [u8] {
        let entry = object::SymbolIndex(self.functions[symbol.0 as usize].entry as usize);
        self.table
            .symbol(entry)
            .and_then(|entry| self.table.symbol_name(LittleEndian, entry))
            .unwrap_or_default()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether the image has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Every function: address, and size in bytes.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.functions
            .iter()
            .map(|function| (function.start, function.size.into()))
    }
}

/// End of the code section that the symbol is in; `None` if the symbol names no code.
fn code_limit(symbol: &Sym64<LittleEndian>, sections: &SectionTable<'_, Elf>) -> Option<u64> {
    if !matches!(symbol.st_type(), STT_FUNC | STT_NOTYPE) || symbol.st_name(LittleEndian) == 0 {
        return None;
    }
    let index = object::SectionIndex(symbol.st_shndx(LittleEndian).into());
    let section = sections.section(index).ok()?;
    if section.sh_flags(LittleEndian) & u64::from(SHF_EXECINSTR) == 0 {
        return None;
    }
    let start = section.sh_addr(LittleEndian);
    let end = start.checked_add(section.sh_size(LittleEndian))?;
    (start..end)
        .contains(&symbol.st_value(LittleEndian))
        .then_some(end)
}
