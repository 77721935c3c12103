//! Loads the kernel, as the loader would that the shim stands in for: by its program headers, and entered where its PVH note says.
//! Formats: System V ABI, chapters 4 and 5.

use crate::memory;
use crate::report::give_up;
use crate::start;
use ipc::bootfs::{self, Bootfs};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// What the header of the file holds, in its second half, of the program headers.
#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct FileHeader {
    _ident: [u8; 24],
    _entry: u64,
    table: u64,
    _sections: u64,
    _flags: u32,
    _size: [u16; 2],
    count: u16,
    _rest: [u16; 3],
}

#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ProgramHeader {
    kind: u32,
    _flags: u32,
    offset: u64,
    _address: u64,
    physical: u64,
    bytes: u64,
    memory: u64,
    _alignment: u64,
}

const LOAD: u32 = 1;
const NOTE: u32 = 4;

/// The PVH note, whole; and the value of the entry, which follows.
#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Note {
    name_bytes: u32,
    value_bytes: u32,
    kind: u32,
    name: [u8; 4],
    entry: [u8; 8],
}

/// The note's type that has the entry in 32-bit mode.
const XEN_PHYS32_ENTRY: u32 = 18;

/// Loads the kernel of this archive; returns its entry.
pub fn load(archive: &[u8]) -> u64 {
    let archive = Bootfs::parse(archive).unwrap_or_else(|error| give_up(format_args!("{error}")));
    let kernel = archive.find(bootfs::KERNEL);
    match kernel.and_then(|kernel| place_all(kernel.data)) {
        Some(entry) => entry,
        None => give_up(format_args!("no kernel with a PVH entry in the archive")),
    }
}

/// `None` if the file is damaged or has no entry.
fn place_all(file: &[u8]) -> Option<u64> {
    let (header, _) = FileHeader::read_from_prefix(file).ok()?;
    let table = file.get(header.table as usize..)?;
    let count = usize::from(header.count);
    let (headers, _) = <[ProgramHeader]>::ref_from_prefix_with_elems(table, count).ok()?;
    let mut entry = None;
    for header in headers {
        let from = file.get(header.offset as usize..)?;
        let data = from.get(..header.bytes as usize)?;
        match header.kind {
            LOAD => place(header.physical, data, header.memory),
            NOTE => entry = entry_in(data).or(entry),
            _ => {}
        }
    }
    entry
}

/// The entry, if it is told by the first note of these: the only one that this kernel has beside its build-id, which follows.
fn entry_in(notes: &[u8]) -> Option<u64> {
    let (note, _) = Note::read_from_prefix(notes).ok()?;
    let is_it = (note.name_bytes, note.value_bytes, note.kind) == (4, 8, XEN_PHYS32_ENTRY)
        && &note.name == b"Xen\0";
    is_it.then(|| u64::from_le_bytes(note.entry))
}

/// Puts a part of the kernel where it belongs.
fn place(at: u64, data: &[u8], bytes: u64) {
    const LOW_MEMORY: u64 = 1 << 20;
    let end = at.saturating_add(bytes);
    let zeros = bytes.checked_sub(data.len() as u64);
    let (Some(zeros), true) = (zeros, at >= LOW_MEMORY && end <= start::shim().start) else {
        give_up(format_args!("the kernel is to lie at {at:#x} to {end:#x}"));
    };
    // SAFETY: above what firmware uses and below the shim, in memory that QEMU would load a kernel into.
    unsafe { memory::write(at, data) };
    // SAFETY: as above.
    unsafe { memory::clear(at + data.len() as u64, zeros) };
}
