//! Writes the symbol table that `ipc::symtab` reads.

use anyhow::Result;
use ipc::digest::digest;
use ipc::name::display_name;
use ipc::symtab::MAGIC;

use super::elf::{self, Function};

/// The table of an ELF image whose own crates are `own`.
///
/// # Errors
/// If the file is not ELF.
pub fn build(elf: &[u8], own: &[&str]) -> Result<Vec<u8>> {
    Ok(encode(&elf::functions(elf)?, own))
}

fn encode(functions: &[Function], own: &[&str]) -> Vec<u8> {
    // Addresses are 32 bits from the base: what lies too far below the top, which is the boot code that runs before there
    // is a console, is left out.
    let top = functions.last().map_or(0, |function| function.address);
    let near = |function: &&Function| u32::try_from(top - function.address).is_ok();
    let base = functions
        .iter()
        .find(near)
        .map_or(0, |function| function.address);

    let (mut symbols, mut names) = (Vec::new(), Vec::new());
    for function in functions.iter().filter(near) {
        let name = display_name(function.name.as_bytes(), own);
        let size = u32::try_from(function.size).unwrap_or(u32::MAX);
        let relative = (function.address - base) as u32;
        for number in [relative, size, names.len() as u32, name.len() as u32] {
            symbols.extend(number.to_le_bytes());
        }
        names.extend(name.bytes());
    }
    let count = (symbols.len() / ipc::symtab::SYMBOL_SIZE) as u32;
    let names_len = names.len() as u32;
    symbols.extend(names);

    let mut out = MAGIC.to_vec();
    out.extend(base.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(names_len.to_le_bytes());
    out.extend(digest(&symbols).to_le_bytes());
    out.extend(symbols);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::symtab::SymbolTable;

    fn function(address: u64, size: u64, name: &str) -> Function {
        let name = name.to_owned();
        Function {
            address,
            size,
            name,
        }
    }

    #[test]
    fn the_reader_finds_what_was_written() {
        let text = 0xffff_ffff_8000_1000;
        let functions = [
            function(0x10_0000, 64, "_start32"),
            function(text, 16, "syscall_entry"),
            function(text + 32, 8, "_RNvCsabc_6kernel4idle"),
        ];
        let bytes = encode(&functions, &["kernel"]);
        let table = SymbolTable::parse(&bytes).unwrap();
        let name = |address| {
            table
                .lookup(address)
                .map(|symbol| (symbol.name, symbol.offset))
        };
        assert_eq!(name(text + 3), Some(("syscall_entry", 3)));
        assert_eq!(name(text + 33), Some(("idle", 1)));
        assert_eq!(name(text + 20), None);
        assert_eq!(name(0x10_0000), None);
    }

    #[test]
    fn no_functions_make_an_empty_table() {
        assert!(SymbolTable::parse(&encode(&[], &["kernel"])).is_ok());
    }
}
