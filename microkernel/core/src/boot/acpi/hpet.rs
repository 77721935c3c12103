//! The HPET's description table (IA-PC HPET specification 1.0a, 3.2.4) and what its capability register says (2.3.4).

use super::{PhysRead, Table, field};
use crate::boot::tsc::Reference;

/// Slowest period that the specification allows, in femtoseconds.
const PERIOD_MAX: u64 = 100_000_000;

/// Where the HPET's registers are; `None` if the table does not say, or says that they are not in memory.
pub fn base(memory: &impl PhysRead, table: Table) -> Option<u64> {
    const IN_MEMORY: u8 = 0;
    let address: [u8; 12] = field(memory, table, 40)?;
    let base = super::word(&address, 4);
    (address[0] == IN_MEMORY && base != 0 && base.is_multiple_of(8)).then_some(base)
}

/// The main counter as a clock, from the capability register; `None` if its period cannot be true.
#[must_use]
pub fn reference(capabilities: u64) -> Option<Reference> {
    let period = capabilities >> 32;
    let wide = capabilities >> 13 & 1 == 1;
    (1..=PERIOD_MAX).contains(&period).then(|| Reference {
        hz: 1_000_000_000_000_000 / period,
        // A 32-bit processor bus may split the read: only the low half is read.
        bits: if wide { 64 } else { 32 },
    })
}

#[cfg(test)]
mod tests {
    use super::super::Tables;
    use super::super::testing::{firmware, table};
    use super::*;

    fn found(body: &[u8]) -> Option<u64> {
        let memory = firmware(2, vec![table(b"HPET", body)]);
        let table = Tables::find(&memory, None).unwrap().get(b"HPET").unwrap();
        base(&memory, table)
    }

    #[test]
    fn the_base_is_a_memory_address() {
        let mut body = [0; 20];
        body[8..16].copy_from_slice(&0xfed0_0000u64.to_le_bytes());
        assert_eq!(found(&body), Some(0xfed0_0000));
        assert_eq!(found(&body[..15]), None);
        body[4] = 1;
        assert_eq!(found(&body), None);
        assert_eq!(found(&[0; 20]), None);
    }

    #[test]
    fn the_period_must_be_possible() {
        let qemu = 10_000_000u64 << 32 | 0x8086_a201;
        assert_eq!(
            reference(qemu),
            Some(Reference {
                hz: 100_000_000,
                bits: 64
            })
        );
        assert_eq!(reference(0), None);
        assert_eq!(reference(u64::MAX), None);
    }
}
