//! ACPI tables: finding them and believing only those whose checksum is right. Offsets are those of the ACPI
//! specification, version 6.5, chapter 5.

pub mod fadt;
pub mod hpet;
pub mod madt;
#[cfg(test)]
mod testing;

use super::{PhysRead, half, word};
use heapless::Vec;

/// Bytes of the header that every table begins with.
pub const HEADER_SIZE: u32 = 36;
/// Longest table that is read, in bytes; a differentiated system description table can be large.
const TABLE_MAX: u32 = 1 << 20;
/// Most tables that the root table may list.
const TABLES_MAX: u32 = 128;
/// Where the root pointer may lie when the loader does not say: the BIOS area (5.2.5.1).
const BIOS_AREA: core::ops::Range<u64> = 0xe_0000..0x10_0000;

/// A table: where it is and how long; its checksum was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its four letters.
    pub signature: [u8; 4],
    /// Physical address of its header.
    pub at: u64,
    /// Bytes in all, at least [`HEADER_SIZE`].
    pub bytes: u32,
}

/// Why there are no tables at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No root pointer, or none with a right checksum.
    NoRootPointer,
    /// The root table is damaged.
    BadRootTable,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NoRootPointer => "no ACPI root pointer",
            Self::BadRootTable => "the ACPI root table is damaged",
        })
    }
}

/// The tables that the root table lists and that are whole.
#[derive(Debug, Default)]
pub struct Tables(Vec<Table, { TABLES_MAX as usize }>);

impl Tables {
    /// Finds the tables, from the root pointer at `rsdp` or else by looking where the firmware of a PC puts it.
    ///
    /// # Errors
    /// Why there are none.
    pub fn find(memory: &impl PhysRead, rsdp: Option<u64>) -> Result<Self, Error> {
        let root = rsdp
            .and_then(|at| root_table(memory, at))
            .or_else(|| BIOS_AREA.step_by(16).find_map(|at| root_table(memory, at)))
            .ok_or(Error::NoRootPointer)?;
        let table = open(memory, root).ok_or(Error::BadRootTable)?;
        let pointer_size = match &table.signature {
            b"XSDT" => 8,
            b"RSDT" => 4,
            _ => return Err(Error::BadRootTable),
        };
        let mut tables = Vec::new();
        for index in 0..((table.bytes - HEADER_SIZE) / pointer_size).min(TABLES_MAX) {
            let at = root + u64::from(HEADER_SIZE + index * pointer_size);
            let pointer = match pointer_size {
                8 => memory.bytes::<8>(at).map(u64::from_le_bytes),
                _ => memory.bytes::<4>(at).map(|b| u32::from_le_bytes(b).into()),
            };
            if let Some(table) = pointer.and_then(|at| open(memory, at)) {
                // There is room for all that the loop visits.
                let _ = tables.push(table);
            }
        }
        Ok(Self(tables))
    }

    /// The first table with this signature.
    #[must_use]
    pub fn get(&self, signature: &[u8; 4]) -> Option<Table> {
        self.0.iter().find(|t| &t.signature == signature).copied()
    }
}

/// The root table's address, from a root pointer (5.2.5.3).
fn root_table(memory: &impl PhysRead, at: u64) -> Option<u64> {
    let old: [u8; 20] = memory.bytes(at)?;
    if !old.starts_with(b"RSD PTR ") || sum(&old) != 0 {
        return None;
    }
    if old[15] >= 2 {
        let new: [u8; 36] = memory.bytes(at)?;
        let xsdt = word(&new, 24);
        if sum(&new) == 0 && xsdt != 0 {
            return Some(xsdt);
        }
    }
    Some(half(&old, 16).into()).filter(|&rsdt| rsdt != 0)
}

/// The table at an address, if it is whole.
pub fn open(memory: &impl PhysRead, at: u64) -> Option<Table> {
    let header: [u8; HEADER_SIZE as usize] = memory.bytes(at)?;
    let bytes = half(&header, 4);
    if !(HEADER_SIZE..=TABLE_MAX).contains(&bytes) || at.checked_add(bytes.into()).is_none() {
        return None;
    }
    let mut total = 0u8;
    let mut chunk = [0; 64];
    for start in (0..bytes).step_by(chunk.len()) {
        let part = chunk.get_mut(..(bytes - start).min(64) as usize)?;
        if !memory.read(at + u64::from(start), part) {
            return None;
        }
        total = total.wrapping_add(sum(part));
    }
    (total == 0).then_some(Table {
        signature: *header.first_chunk()?,
        at,
        bytes,
    })
}

/// A field of a table, `None` where the table is too short to have it.
fn field<const N: usize>(memory: &impl PhysRead, table: Table, offset: u32) -> Option<[u8; N]> {
    if offset as usize + N > table.bytes as usize {
        return None;
    }
    memory.bytes(table.at + u64::from(offset))
}

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, &byte| sum.wrapping_add(byte))
}

#[cfg(test)]
mod tests {
    use super::testing::{firmware, rsdp, table};
    use super::*;

    #[test]
    fn both_root_tables_lead_to_the_tables() {
        for revision in [0, 2] {
            let memory = firmware(
                revision,
                vec![table(b"APIC", &[1, 2, 3]), table(b"HPET", &[])],
            );
            let tables = Tables::find(&memory, Some(0xf_0000)).unwrap();
            assert_eq!(tables.get(b"APIC").unwrap().bytes, 39);
            assert_eq!(tables.get(b"HPET").unwrap().bytes, 36);
            assert_eq!(tables.get(b"FACP"), None);
        }
    }

    #[test]
    fn the_root_pointer_is_searched_for() {
        let mut memory = firmware(2, vec![table(b"APIC", &[])]);
        memory.0[0].0 = 0xe_4560;
        for told in [None, Some(0x10), Some(u64::MAX)] {
            assert!(Tables::find(&memory, told).unwrap().get(b"APIC").is_some());
        }
        memory.0[0].1[9] ^= 1;
        assert_eq!(
            Tables::find(&memory, None).err(),
            Some(Error::NoRootPointer)
        );
    }

    #[test]
    fn a_damaged_table_is_left_out() {
        for (at, value) in [(4, 0), (4, 255), (7, 1), (20, 1)] {
            let mut bad = table(b"APIC", &[7; 20]);
            bad[at] = value;
            let memory = firmware(2, vec![bad, table(b"HPET", &[])]);
            let tables = Tables::find(&memory, Some(0xf_0000)).unwrap();
            assert_eq!(tables.get(b"APIC"), None, "byte {at}");
            assert!(tables.get(b"HPET").is_some());
        }
    }

    #[test]
    fn a_damaged_root_is_an_error() {
        let mut memory = firmware(2, vec![table(b"APIC", &[])]);
        memory.0[1].1[30] ^= 4;
        assert_eq!(
            Tables::find(&memory, Some(0xf_0000)).err(),
            Some(Error::BadRootTable)
        );
        memory.0[1].1 = table(b"WHAT", &[]);
        assert_eq!(
            Tables::find(&memory, Some(0xf_0000)).err(),
            Some(Error::BadRootTable)
        );
        memory.0[0].1 = rsdp(0, 0);
        assert_eq!(
            Tables::find(&memory, Some(0xf_0000)).err(),
            Some(Error::NoRootPointer)
        );
    }
}
