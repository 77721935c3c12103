//! What the firmware left in memory: the start information of the boot protocol, and the ACPI tables. Every address in them is
//! followed through memory of a few pieces.

use arbitrary::{Arbitrary, Unstructured};
use kcore::boot::acpi::{Tables, fadt, hpet, madt};
use kcore::boot::{PhysRead, pvh};

/// Where the one or the other begins that is read first.
const START: u64 = 0x1000;

/// Bytes at an address.
#[derive(Arbitrary, Debug)]
struct Piece<'a> {
    at: u32,
    /// Makes the first byte of the sum's field such that the bytes add up to nothing, as a table's do.
    table: bool,
    bytes: &'a [u8],
}

struct Memory(Vec<(u64, Vec<u8>)>);

impl PhysRead for Memory {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        self.0.iter().any(|(base, bytes)| {
            let from = at
                .checked_sub(*base)
                .and_then(|from| usize::try_from(from).ok());
            let part = from.and_then(|from| bytes.get(from..)?.get(..into.len()));
            part.map(|part| into.copy_from_slice(part)).is_some()
        })
    }
}

/// Sets the byte `at` so that the first `len` add up to zero.
fn balance(bytes: &mut [u8], at: usize, len: usize) {
    let sum = bytes
        .iter()
        .take(len)
        .fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    if let Some(byte) = bytes.get_mut(at) {
        *byte = byte.wrapping_sub(sum);
    }
}

impl Piece<'_> {
    fn place(&self) -> (u64, Vec<u8>) {
        let mut bytes = self.bytes.to_vec();
        if bytes.starts_with(b"RSD PTR ") {
            balance(&mut bytes, 8, 20);
            balance(&mut bytes, 32, 36);
        } else if self.table {
            let length = bytes.len();
            if let Some(field) = bytes.get_mut(4..8) {
                field.copy_from_slice(&(length as u32).to_le_bytes());
            }
            balance(&mut bytes, 9, length);
        }
        (self.at.into(), bytes)
    }
}

/// The pieces; the first is where the kernel looks.
pub fn run(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let mut pieces: Vec<_> = super::acts(&mut input)
        .map(|piece: Piece<'_>| piece.place())
        .collect();
    if let Some((at, _)) = pieces.first_mut() {
        *at = START;
    }
    let memory = Memory(pieces);
    if let Ok(info) = pvh::parse(&memory, START) {
        let _ = format!("{info:?}");
    }
    let Ok(tables) = Tables::find(&memory, Some(START)) else {
        return;
    };
    if let Some(table) = tables.get(b"APIC") {
        let madt = madt::parse(&memory, table);
        assert!(madt.controllers().count() <= bytes.len());
        for global in 0..32 {
            let _ = madt.wiring(global);
        }
    }
    if let Some(table) = tables.get(b"FACP") {
        let _ = fadt::parse(&memory, table);
    }
    if let Some(table) = tables.get(b"HPET") {
        let _ = hpet::base(&memory, table);
    }
}
