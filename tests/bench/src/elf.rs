//! ELF files with as many functions as the workload wants: names as rustc writes them, and an unwind table, but no code.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem::size_of;

use object::elf::{
    ELFCLASS64, ELFDATA2LSB, ELFMAG, EM_X86_64, ET_EXEC, EV_CURRENT, FileHeader64, Ident, PF_R,
    PF_X, PT_LOAD, ProgramHeader64, SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS, SHT_PROGBITS, SHT_STRTAB,
    SHT_SYMTAB, STB_GLOBAL, STT_FUNC, SectionHeader64, Sym64,
};
use object::pod::bytes_of;
use object::{LittleEndian, U16, U32, U64};

type Le = LittleEndian;

/// Bytes of each function.
pub const FUNCTION_BYTES: u64 = 64;
/// Bytes at a function's beginning that build its frame.
pub const PROLOGUE_BYTES: u64 = 4;
/// Functions in a module, whose number is a part of their names.
const MODULE: u32 = 50;

/// The sections: in this order, after the empty one.
const NAMES: &[u8] = b"\0.text\0.symtab\0.strtab\0.eh_frame\0";
const TEXT_NAME: u32 = 1;
const SYMTAB_NAME: u32 = 7;
const STRTAB_NAME: u32 = 15;
const EH_FRAME_NAME: u32 = 23;
const TEXT: u16 = 1;
const STRTAB: u32 = 3;
const SECTIONS: u16 = 6;

/// Builds an executable of a crate with so many functions, one after the other from `base` on.
#[must_use]
pub fn build(krate: &str, base: u64, functions: u32) -> Vec<u8> {
    let text_bytes = u64::from(functions) * FUNCTION_BYTES;
    let unwind_base = base + text_bytes;
    let (symbols, strings) = symbols(krate, base, functions);

    let segment_at = size_of::<FileHeader64<Le>>();
    let mut file = alloc::vec![0; segment_at + size_of::<ProgramHeader64<Le>>()];
    let code = u64::from(SHF_ALLOC | SHF_EXECINSTR);
    let data = u64::from(SHF_ALLOC);
    let mut headers = alloc::vec![0; size_of::<SectionHeader64<Le>>()];
    headers.extend(section(
        TEXT_NAME,
        SHT_NOBITS,
        code,
        base,
        (0, text_bytes),
        0,
    ));
    let at = append(&mut file, &symbols);
    headers.extend(section(SYMTAB_NAME, SHT_SYMTAB, 0, 0, at, STRTAB));
    let at = append(&mut file, &strings);
    headers.extend(section(STRTAB_NAME, SHT_STRTAB, 0, 0, at, 0));
    let at = append(&mut file, &unwind_table(base, unwind_base, functions));
    headers.extend(section(
        EH_FRAME_NAME,
        SHT_PROGBITS,
        data,
        unwind_base,
        at,
        0,
    ));
    let at = append(&mut file, NAMES);
    headers.extend(section(STRTAB_NAME, SHT_STRTAB, 0, 0, at, 0));
    let (headers_at, _) = append(&mut file, &headers);

    file[..segment_at].copy_from_slice(bytes_of(&header(base, headers_at)));
    let segment = segment(base, text_bytes);
    file[segment_at..][..size_of::<ProgramHeader64<Le>>()].copy_from_slice(bytes_of(&segment));
    file
}

/// Appends a section's bytes; where they are, and how many.
fn append(file: &mut Vec<u8>, bytes: &[u8]) -> (u64, u64) {
    file.resize(file.len().next_multiple_of(8), 0);
    let offset = file.len() as u64;
    file.extend(bytes);
    (offset, bytes.len() as u64)
}

fn u16(value: u16) -> U16<Le> {
    U16::new(LittleEndian, value)
}

fn u32(value: u32) -> U32<Le> {
    U32::new(LittleEndian, value)
}

fn u64(value: u64) -> U64<Le> {
    U64::new(LittleEndian, value)
}

fn header(entry: u64, sections_at: u64) -> FileHeader64<Le> {
    FileHeader64 {
        e_ident: Ident {
            magic: ELFMAG,
            class: ELFCLASS64,
            data: ELFDATA2LSB,
            version: EV_CURRENT,
            os_abi: 0,
            abi_version: 0,
            padding: [0; 7],
        },
        e_type: u16(ET_EXEC),
        e_machine: u16(EM_X86_64),
        e_version: u32(EV_CURRENT.into()),
        e_entry: u64(entry),
        e_phoff: u64(size_of::<FileHeader64<Le>>() as u64),
        e_shoff: u64(sections_at),
        e_flags: u32(0),
        e_ehsize: u16(size_of::<FileHeader64<Le>>() as u16),
        e_phentsize: u16(size_of::<ProgramHeader64<Le>>() as u16),
        e_phnum: u16(1),
        e_shentsize: u16(size_of::<SectionHeader64<Le>>() as u16),
        e_shnum: u16(SECTIONS),
        e_shstrndx: u16(SECTIONS - 1),
    }
}

fn segment(base: u64, bytes: u64) -> ProgramHeader64<Le> {
    ProgramHeader64 {
        p_type: u32(PT_LOAD),
        p_flags: u32(PF_R | PF_X),
        p_offset: u64(0),
        p_vaddr: u64(base),
        p_paddr: u64(base),
        p_filesz: u64(0),
        p_memsz: u64(bytes),
        p_align: u64(4096),
    }
}

/// The header of a section whose bytes are `at` (offset, size).
fn section(name: u32, kind: u32, flags: u64, address: u64, at: (u64, u64), link: u32) -> Vec<u8> {
    let entry = if kind == SHT_SYMTAB {
        size_of::<Sym64<Le>>()
    } else {
        0
    };
    let header = SectionHeader64::<Le> {
        sh_name: u32(name),
        sh_type: u32(kind),
        sh_flags: u64(flags),
        sh_addr: u64(address),
        sh_offset: u64(at.0),
        sh_size: u64(at.1),
        sh_link: u32(link),
        sh_info: u32(0),
        sh_addralign: u64(8),
        sh_entsize: u64(entry as u64),
    };
    bytes_of(&header).to_vec()
}

/// The symbol table and its strings.
fn symbols(krate: &str, base: u64, functions: u32) -> (Vec<u8>, Vec<u8>) {
    let mut symbols = alloc::vec![0; size_of::<Sym64<Le>>()];
    let mut strings = alloc::vec![0];
    for number in 0..functions {
        let symbol = Sym64::<Le> {
            st_name: u32(strings.len() as u32),
            st_info: STB_GLOBAL << 4 | STT_FUNC,
            st_other: 0,
            st_shndx: u16(TEXT),
            st_value: u64(base + u64::from(number) * FUNCTION_BYTES),
            st_size: u64(FUNCTION_BYTES),
        };
        symbols.extend(bytes_of(&symbol));
        strings.extend(mangled(krate, number).bytes());
        strings.push(0);
    }
    (symbols, strings)
}

/// `KRATE::module_M::function_N` as rustc mangles it (RFC 2603).
fn mangled(krate: &str, number: u32) -> String {
    let module = format!("module_{}", number / MODULE);
    let function = format!("function_{number}");
    let part = |name: &str| format!("{}{name}", name.len());
    format!(
        "_RNvNtCs1_{}{}{}",
        part(krate),
        part(&module),
        part(&function)
    )
}

/// The unwind table (`.eh_frame`; System V ABI for AMD64, section 3.7): each function pushes RBP in its first byte, and sets it
/// to RSP in the next three.
fn unwind_table(base: u64, table: u64, functions: u32) -> Vec<u8> {
    // Version 1; augmentation "zR" with addresses relative and signed, 32 bits; code by 1, data by -8, return address in 16.
    // At the start the frame's address is RSP (7) + 8, and the return address 8 below it.
    let common = [1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1];
    // After 1 byte the frame is at RSP + 16 and RBP (6) saved 16 below it; after 3 more it is found from RBP.
    let steps = [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6];
    let mut bytes = Vec::new();
    entry(&mut bytes, 0, &common);
    for number in 0..functions {
        let here = bytes.len() as u64;
        // The address comes behind the length and the way back to the common entry.
        let function = base + u64::from(number) * FUNCTION_BYTES;
        let distance = function.wrapping_sub(table + here + 8) as u32;
        let mut own = Vec::new();
        own.extend(distance.to_le_bytes());
        own.extend((FUNCTION_BYTES as u32).to_le_bytes());
        own.push(0);
        own.extend(steps);
        entry(&mut bytes, here as u32 + 4, &own);
    }
    bytes.extend([0; 4]);
    bytes
}

/// Appends an entry of the unwind table, filled up with operations that do nothing.
fn entry(table: &mut Vec<u8>, back: u32, content: &[u8]) {
    let len = (4 + content.len()).next_multiple_of(8) + 4;
    table.extend((len as u32).to_le_bytes());
    table.extend(back.to_le_bytes());
    table.extend(content);
    table.resize(table.len() + len - 4 - content.len(), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use profd::image::Image;
    use profd::unwind::Rule;

    #[test]
    fn profd_reads_every_function_and_its_frame() {
        let file = build("server", 0x40_0000, 2000);
        let image = Image::parse(&file).unwrap();
        assert_eq!(image.symbols.len(), 2000);
        for number in [0_u64, 1, 1999] {
            let start = 0x40_0000 + number * FUNCTION_BYTES;
            let (symbol, offset) = image.symbols.find(start + 5).unwrap();
            assert_eq!((image.symbols.start(symbol), offset), (start, 5));
            let name = ipc::name::display_name(image.symbols.raw_name(symbol), &["server"]);
            let module = number / u64::from(MODULE);
            assert_eq!(name, format!("module_{module}::function_{number}"));
            let stack = |frame| Rule::StackPointer {
                frame,
                slot: frame - 8,
            };
            assert_eq!(image.rule(start), stack(8));
            assert_eq!(image.rule(start + 1), stack(16));
            assert_eq!(image.rule(start + PROLOGUE_BYTES), Rule::FramePointer);
            assert!(image.is_code(start));
        }
        assert!(
            image
                .symbols
                .find(0x40_0000 + 2000 * FUNCTION_BYTES)
                .is_none()
        );
    }
}
