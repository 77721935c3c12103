//! Makes firmware tables for tests.

use super::super::testing::Pieces;
use super::sum;

const ROOT: u64 = 0x7fe_0000;
const TABLES: u64 = 0x1_0000_0000;

/// A table with a right checksum.
pub fn table(signature: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut table = signature.to_vec();
    table.extend((36 + body.len() as u32).to_le_bytes());
    table.resize(36, 0);
    table.extend(body);
    table[9] = 0u8.wrapping_sub(sum(&table));
    table
}

/// A root pointer: of revision 0 to a table with 32-bit pointers, of revision 2 to one with 64-bit pointers.
pub fn rsdp(revision: u8, root: u64) -> Vec<u8> {
    let mut pointer = b"RSD PTR \0SONDE ".to_vec();
    pointer.push(revision);
    pointer.extend(if revision < 2 { root as u32 } else { 0 }.to_le_bytes());
    pointer[8] = 0u8.wrapping_sub(sum(&pointer));
    pointer.extend(36u32.to_le_bytes());
    pointer.extend(root.to_le_bytes());
    pointer.extend([0; 4]);
    pointer[32] = 0u8.wrapping_sub(sum(&pointer));
    pointer
}

/// Memory with a root pointer at 0xf0000, a root table and these tables; above 4 GiB where the revision allows that.
pub fn firmware(revision: u8, tables: Vec<Vec<u8>>) -> Pieces {
    let base = if revision < 2 { 0x7ff_0000 } else { TABLES };
    let places: Vec<u64> = (0..)
        .map(|n| base + n * 0x1000)
        .take(tables.len())
        .collect();
    let root = match revision {
        0 | 1 => table(
            b"RSDT",
            &places
                .iter()
                .flat_map(|&p| (p as u32).to_le_bytes())
                .collect::<Vec<_>>(),
        ),
        _ => table(
            b"XSDT",
            &places
                .iter()
                .flat_map(|p| p.to_le_bytes())
                .collect::<Vec<_>>(),
        ),
    };
    let mut pieces = vec![(0xf_0000, rsdp(revision, ROOT)), (ROOT, root)];
    pieces.extend(places.into_iter().zip(tables));
    Pieces(pieces)
}
