//! Takes the debug information out of an ELF file, and nothing else: symbols and unwind tables stay, and so does every
//! byte that is loaded, where it is.
//!
//! A machine with Rust has no `objcopy` for certain, and the linker's own `--strip-debug` would mean to link twice, since the
//! whole file is kept for debuggers. Sections that go become inactive entries (`SHT_NULL`), so no index changes.

use anyhow::{Context, Result};
use object::elf::{FileHeader64, SHF_ALLOC, SHT_NOBITS, SectionHeader64};
use object::pod::{bytes_of, bytes_of_slice};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian, U32, U64};

type Header = FileHeader64<LittleEndian>;
type Section = SectionHeader64<LittleEndian>;

/// The file without its debug information.
///
/// `.debug_frame` stays: the precompiled core has its unwind tables only there.
///
/// # Errors
/// If this is not a 64-bit little-endian ELF file.
pub fn strip_debug(elf: &[u8]) -> Result<Vec<u8>> {
    let header = Header::parse(elf)?;
    let sections = header.sections(LittleEndian, elf)?;
    let loaded = header
        .program_headers(LittleEndian, elf)?
        .iter()
        .map(|segment| segment.p_offset(LittleEndian) + segment.p_filesz(LittleEndian))
        .chain([size_of::<Header>() as u64])
        .max()
        .unwrap_or(0);
    let mut out = elf
        .get(..loaded as usize)
        .context("a segment reaches past the end")?
        .to_vec();

    let mut kept: Vec<Section> = Vec::new();
    for section in sections.iter() {
        let name = sections.section_name(LittleEndian, section)?;
        let (flags, kind) = (
            section.sh_flags(LittleEndian),
            section.sh_type(LittleEndian),
        );
        let mut new = *section;
        if flags & u64::from(SHF_ALLOC) != 0 || kind == SHT_NOBITS {
            // Loaded with a segment, where it is.
        } else if is_debug(name) {
            new = inactive();
        } else {
            let align = section.sh_addralign(LittleEndian).clamp(1, 4096) as usize;
            out.resize(out.len().next_multiple_of(align), 0);
            new.sh_offset = U64::new(LittleEndian, out.len() as u64);
            out.extend(section.data(LittleEndian, elf)?);
        }
        kept.push(new);
    }

    out.resize(out.len().next_multiple_of(8), 0);
    let mut new_header = *header;
    new_header.e_shoff = U64::new(LittleEndian, out.len() as u64);
    out.extend(bytes_of_slice(&kept));
    out[..size_of::<Header>()].copy_from_slice(bytes_of(&new_header));
    Ok(out)
}

fn is_debug(name: &[u8]) -> bool {
    name == b".comment" || name.starts_with(b".debug_") && name != b".debug_frame"
}

/// An entry of the section table that names no section.
fn inactive() -> Section {
    let (half, word) = (U32::new(LittleEndian, 0), U64::new(LittleEndian, 0));
    Section {
        sh_name: half,
        sh_type: half,
        sh_flags: word,
        sh_addr: word,
        sh_offset: word,
        sh_size: word,
        sh_link: half,
        sh_info: half,
        sh_addralign: word,
        sh_entsize: word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};

    #[test]
    fn only_debug_information_goes() {
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let stripped = strip_debug(&whole).unwrap();
        assert!(stripped.len() < whole.len());
        let (old, new) = (
            object::File::parse(&*whole).unwrap(),
            object::File::parse(&*stripped).unwrap(),
        );
        assert!(old.section_by_name(".debug_info").is_some());
        assert!(new.section_by_name(".debug_info").is_none());
        // All but the file header, which says where the section table is.
        let loaded = |file: &object::File<'_>, bytes: &[u8]| -> Vec<_> {
            file.segments()
                .map(|segment| (segment.address(), segment.file_range()))
                .map(|(address, (start, len))| {
                    let range = start.max(64) as usize..(start + len) as usize;
                    (address, bytes[range].to_vec())
                })
                .collect()
        };
        assert!(loaded(&old, &whole) == loaded(&new, &stripped));
        for name in [".text", ".eh_frame", ".symtab", ".strtab"] {
            let data = |file: &object::File<'_>| {
                file.section_by_name(name).unwrap().data().unwrap().to_vec()
            };
            assert!(data(&old) == data(&new), "{name}");
        }
        let symbols = |file: &object::File<'_>| -> Vec<_> {
            file.symbols()
                .map(|s| (s.name().unwrap().to_owned(), s.address(), s.section_index()))
                .collect()
        };
        assert!(symbols(&old) == symbols(&new));
    }

    #[test]
    fn what_is_not_elf_is_refused() {
        assert!(strip_debug(b"").is_err());
        assert!(strip_debug(&[0; 4096]).is_err());
    }
}
