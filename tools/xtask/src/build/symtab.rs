//! Writes the symbol table that `ipc::symtab` reads.

use anyhow::Result;
use ipc::symtab::{MAGIC, checksum};

use super::elf::{self, Function};

/// The table of an ELF image; `image` is the crate whose prefix is left out of names.
///
/// # Errors
/// If the file is not ELF.
pub fn build(elf: &[u8], image: &str) -> Result<Vec<u8>> {
    Ok(encode(&elf::functions(elf)?, image))
}

fn encode(functions: &[Function], image: &str) -> Vec<u8> {
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
        let name = display_name(&function.name, image);
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
    out.extend(checksum(&symbols).to_le_bytes());
    out.extend(symbols);
    out
}

/// The name as reports print it: demangled, without hashes, and without the image's own crate wherever a path begins.
fn display_name(mangled: &str, image: &str) -> String {
    let name = format!("{:#}", rustc_demangle::demangle(mangled));
    let own = format!("{image}::");
    let mut short = String::with_capacity(name.len());
    let mut rest = name.as_str();
    while let Some(at) = rest.find(&own) {
        let (before, after) = rest.split_at(at);
        short.push_str(before);
        let inside_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        if short.ends_with(inside_path) {
            short.push_str(&own);
        }
        rest = &after[own.len()..];
    }
    short + rest
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
        let bytes = encode(&functions, "kernel");
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
        assert!(SymbolTable::parse(&encode(&[], "kernel")).is_ok());
    }

    #[test]
    fn only_the_own_crate_is_left_out() {
        assert_eq!(display_name("kernel::main", "kernel"), "main");
        assert_eq!(
            display_name("<kernel::a::B as core::C>::d", "kernel"),
            "<a::B as core::C>::d"
        );
        assert_eq!(display_name("core::kernel::x", "kernel"), "core::kernel::x");
        assert_eq!(display_name("mykernel::x", "kernel"), "mykernel::x");
        assert_eq!(display_name("memcpy", "kernel"), "memcpy");
    }
}
