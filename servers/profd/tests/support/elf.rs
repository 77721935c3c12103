//! Builds small ELF files: code that is never run, a symbol table, and what else a test needs.

/// What goes into a file.
#[derive(Clone, Default)]
pub struct Elf {
    /// Name, address, size, type and binding (`st_info`).
    pub symbols: Vec<(Vec<u8>, u64, u64, u8)>,
    pub text: Option<(u64, u64)>,
    pub eh_frame: Vec<u8>,
    pub debug_frame: Vec<u8>,
    pub build_id: Vec<u8>,
}

/// Name, type, flags, address, (offset, size), link and entry size of a section.
type Header = (u32, u32, u64, u64, (u64, u64), u32, u64);

/// A global function.
pub const FUNCTION: u8 = 0x12;
/// A local function.
pub const LOCAL_FUNCTION: u8 = 0x02;
/// A local label of assembly.
pub const LABEL: u8 = 0x00;
/// Where the unwind table is said to be loaded.
pub const EH_FRAME: u64 = 0x50_0000;

impl Elf {
    /// A file with these functions, in a code section that covers them.
    pub fn new<'n>(functions: impl IntoIterator<Item = (&'n str, u64, u64)>) -> Self {
        let mut elf = Self::default();
        for (name, address, size) in functions {
            elf.symbols.push((name.into(), address, size, FUNCTION));
        }
        let start = elf
            .symbols
            .iter()
            .map(|symbol| symbol.1)
            .min()
            .unwrap_or(0x40_1000);
        let end = elf
            .symbols
            .iter()
            .map(|symbol| symbol.1 + symbol.2)
            .max()
            .unwrap_or(start);
        elf.text = Some((start, end - start));
        elf
    }

    pub fn build(&self) -> Vec<u8> {
        let (text, text_size) = self.text.unwrap_or_default();
        let mut strings = vec![0];
        let mut symbols = vec![0; 24];
        for (name, address, size, info) in &self.symbols {
            symbols.extend((strings.len() as u32).to_le_bytes());
            symbols.extend([*info, 0, 1, 0]);
            symbols.extend(address.to_le_bytes());
            symbols.extend(size.to_le_bytes());
            strings.extend(name);
            strings.push(0);
        }
        let mut note = Vec::new();
        note.extend([4, 0, 0, 0, self.build_id.len() as u8, 0, 0, 0, 3, 0, 0, 0]);
        note.extend(b"GNU\0");
        note.extend(&self.build_id);
        let names = b"\0.text\0.symtab\0.strtab\0.eh_frame\0.note\0.debug_frame\0";

        // Header, one program header, then contents, then section headers.
        let mut file = vec![0; 64 + 56];
        let mut place = |contents: &[u8]| {
            let at = file.len() as u64;
            file.extend(contents);
            file.resize(file.len().next_multiple_of(8), 0);
            (at, contents.len() as u64)
        };
        let code = place(&vec![0x90; text_size as usize]);
        let symbols = place(&symbols);
        let strings = place(&strings);
        let eh_frame = place(&self.eh_frame);
        let note = place(&note);
        let debug_frame = place(&self.debug_frame);
        let names = place(names);
        let sections = file.len() as u64;
        let headers: [Header; 8] = [
            (0, 0, 0, 0, (0, 0), 0, 0),
            (1, 1, 6, text, code, 0, 0),
            (7, 2, 0, 0, symbols, 3, 24),
            (15, 3, 0, 0, strings, 0, 0),
            (23, 1, 2, EH_FRAME, eh_frame, 0, 0),
            (33, 7, 2, 0, note, 0, 0),
            (39, 1, 0, 0, debug_frame, 0, 0),
            (15, 3, 0, 0, names, 0, 0),
        ];
        for (name, kind, flags, address, (offset, size), link, entry) in headers {
            file.extend(name.to_le_bytes());
            file.extend(kind.to_le_bytes());
            for word in [flags, address, offset, size] {
                file.extend(word.to_le_bytes());
            }
            file.extend(link.to_le_bytes());
            file.extend(0u32.to_le_bytes());
            for word in [4, entry] {
                file.extend(u64::to_le_bytes(word));
            }
        }
        let mut header = Vec::new();
        header.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        header.extend([2, 0, 62, 0, 1, 0, 0, 0]);
        for word in [text, 64, sections] {
            header.extend(word.to_le_bytes());
        }
        header.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 8, 0, 7, 0]);
        // PT_LOAD, readable and executable.
        header.extend([1, 0, 0, 0, 5, 0, 0, 0]);
        for word in [code.0, text, text, text_size, text_size, 4096] {
            header.extend(word.to_le_bytes());
        }
        file[..header.len()].copy_from_slice(&header);
        file
    }
}
