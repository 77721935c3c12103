//! What profd knows of one image: its code, its functions and its unwind table, read from its ELF file.
//!
//! Files in the boot archive may be damaged; profd then says so and prints addresses.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::{OnceCell, RefCell};
use core::fmt;
use core::ops::Range;

use object::LittleEndian;
use object::elf::{FileHeader64, PF_X, PT_LOAD, SHF_COMPRESSED, SHT_NOBITS};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable};

use crate::symbols::Symbols;
use crate::unwind::{Rule, Unwind};

type Elf = FileHeader64<LittleEndian>;

/// Ranges of addresses whose rule is remembered: running a function's unwind program takes far longer than finding its result, and
/// nearly all of a function's instructions have one rule.
const RULES_KEPT: usize = 1024;

/// Why an image has no symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// The boot archive has no such file.
    Missing,
    /// It is not an ELF file for this machine.
    NotElf,
    /// Its headers or its symbol table are damaged.
    Damaged,
    /// It has no symbols.
    Stripped,
    /// The process runs another build than the file holds.
    OtherBuild,
}

impl ImageError {
    /// One line for a person.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Missing => "not in the boot archive",
            Self::NotElf => "not an x86-64 ELF file",
            Self::Damaged => "the ELF file is damaged",
            Self::Stripped => "the ELF file has no symbols",
            Self::OtherBuild => "the ELF file is of another build",
        }
    }
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for ImageError {}

/// An image that could be read.
#[derive(Debug)]
pub struct Image<'a> {
    data: &'a [u8],
    sections: SectionTable<'a, Elf>,
    /// Its functions.
    pub symbols: Symbols<'a>,
    /// Build-id, if it has one.
    pub build_id: Option<&'a [u8]>,
    code: Vec<Range<u64>>,
    /// What is compiled here has its tables in `.eh_frame`; what comes with the compiler, memcpy among it, in `.debug_frame` alone.
    unwind: OnceCell<[Option<Unwind<'a>>; 2]>,
    /// By where they begin, with where they end.
    rules: RefCell<BTreeMap<u64, (u64, Rule)>>,
}

impl<'a> Image<'a> {
    /// Reads an ELF file.
    ///
    /// # Errors
    /// The file cannot be used; see [`ImageError`].
    pub fn parse(data: &'a [u8]) -> Result<Self, ImageError> {
        let header = Elf::parse(data).map_err(|_| ImageError::NotElf)?;
        if header.e_machine(LittleEndian) != object::elf::EM_X86_64 || !header.is_little_endian() {
            return Err(ImageError::NotElf);
        }
        let sections = header
            .sections(LittleEndian, data)
            .map_err(|_| ImageError::Damaged)?;
        let segments = header
            .program_headers(LittleEndian, data)
            .map_err(|_| ImageError::Damaged)?;
        let symbols = Symbols::parse(data, &sections).map_err(|_| ImageError::Damaged)?;
        if symbols.is_empty() {
            return Err(ImageError::Stripped);
        }
        let loaded = |segment: &&object::elf::ProgramHeader64<LittleEndian>| {
            segment.p_type(LittleEndian) == PT_LOAD && segment.p_flags(LittleEndian) & PF_X != 0
        };
        let code = segments.iter().filter(loaded).map(|segment| {
            let start = segment.p_vaddr(LittleEndian);
            start..start.saturating_add(segment.p_memsz(LittleEndian))
        });
        let code = code.collect();
        let build_id = build_id(data, &sections);
        Ok(Self {
            data,
            sections,
            symbols,
            build_id,
            code,
            unwind: OnceCell::new(),
            rules: RefCell::default(),
        })
    }

    /// Whether an address of the file is in its code.
    #[must_use]
    pub fn is_code(&self, address: u64) -> bool {
        self.code.iter().any(|range| range.contains(&address))
    }

    /// How the return address is found at an instruction; the tables are indexed at the first question.
    #[must_use]
    pub fn rule(&self, address: u64) -> Rule {
        let mut rules = self.rules.borrow_mut();
        let known = rules.range(..=address).next_back();
        if let Some((_, &(end, rule))) = known
            && address < end
        {
            return rule;
        }
        let tables = self.unwind.get_or_init(|| self.unwind_tables());
        let mut found = tables.iter().flatten();
        let Some((range, rule)) = found.find_map(|table| table.rule(address)) else {
            return Rule::Unknown;
        };
        if rules.len() < RULES_KEPT {
            rules.insert(range.start, (range.end, rule));
        }
        rule
    }

    /// Indexes the unwind tables now.
    pub fn prepare(&self) {
        self.unwind.get_or_init(|| self.unwind_tables());
    }

    fn unwind_tables(&self) -> [Option<Unwind<'a>>; 2] {
        let text = self.section(b".text").map_or(0, |(address, _)| address);
        let eh_frame = self.section(b".eh_frame");
        let debug_frame = self.section(b".debug_frame");
        [
            eh_frame.map(|(address, data)| Unwind::eh_frame(data, address, text)),
            debug_frame.map(|(_, data)| Unwind::debug_frame(data)),
        ]
    }

    /// Address and bytes of a section.
    fn section(&self, name: &[u8]) -> Option<(u64, &'a [u8])> {
        let (_, section) = self.sections.section_by_name(LittleEndian, name)?;
        let compressed = section.sh_flags(LittleEndian) & u64::from(SHF_COMPRESSED) != 0;
        if compressed || section.sh_type(LittleEndian) == SHT_NOBITS {
            return None;
        }
        Some((
            section.sh_addr(LittleEndian),
            section.data(LittleEndian, self.data).ok()?,
        ))
    }
}

fn build_id<'a>(data: &'a [u8], sections: &SectionTable<'a, Elf>) -> Option<&'a [u8]> {
    sections.iter().find_map(|section| {
        let mut notes = section.notes(LittleEndian, data).ok()??;
        while let Ok(Some(note)) = notes.next() {
            if note.name() == object::elf::ELF_NOTE_GNU
                && note.n_type(LittleEndian) == object::elf::NT_GNU_BUILD_ID
            {
                return Some(note.desc());
            }
        }
        None
    })
}
