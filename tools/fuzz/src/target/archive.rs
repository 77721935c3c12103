//! What the boot loader hands over as one piece: the archive, symbol tables, the compiled `system.toml`; and the profile that
//! a program says it was sent.

use ipc::bootfs::Bootfs;
use ipc::symtab::SymbolTable;

/// The first byte says which of them the rest is.
pub fn run(bytes: &[u8]) {
    let Some((&kind, bytes)) = bytes.split_first() else {
        return;
    };
    match kind % 4 {
        0 => archive(bytes),
        1 => symbols(bytes),
        2 => drop(init::config::read(bytes).map_err(|error| error.to_string())),
        _ => profile(bytes),
    }
}

fn archive(bytes: &[u8]) {
    let Ok(archive) = Bootfs::parse(bytes) else {
        return;
    };
    let mut end = 0;
    for file in archive.files() {
        assert_eq!(
            bytes.get(file.offset..file.offset + file.data.len()),
            Some(file.data)
        );
        assert!(file.offset >= end, "two files share bytes");
        assert!(file.offset.is_multiple_of(ipc::bootfs::ALIGNMENT));
        end = file.offset + file.data.len();
        let _ = file.verify();
        let found = archive.find(file.name).map(|found| found.offset);
        assert!(found.is_some_and(|first| first <= file.offset));
    }
}

fn symbols(bytes: &[u8]) {
    let Ok(table) = SymbolTable::parse(bytes) else {
        return;
    };
    let (words, _) = bytes.as_chunks::<4>();
    for &word in words {
        let at = u64::from(u32::from_le_bytes(word));
        if let Some(symbol) = table.lookup(at) {
            assert!(symbol.offset <= at);
        }
        let _ = table.lookup_return(at);
    }
}

/// What is accepted can be written again, as the same bytes, and printed.
fn profile(bytes: &[u8]) {
    if let Ok(profile) = profd::decode::decode(bytes) {
        let again = profd::decode::decode(&profd::encode::encode(&profile));
        assert_eq!(again.as_ref(), Ok(&profile));
    }
}
