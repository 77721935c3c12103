//! The multiple APIC description table: which CPUs and interrupt controllers there are, and how the old interrupt lines
//! are wired (ACPI 6.5, 5.2.12).

use super::{HEADER_SIZE, PhysRead, Table, field, half, word};
use crate::base::cpu::CPUS_MAX;
use crate::boot::memory::Range;
use heapless::Vec;

/// Most I/O APICs used.
pub const IO_APICS_MAX: usize = 8;
/// Interrupt lines of the old controllers.
pub const ISA_LINES: usize = 16;

/// An I/O APIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoApicEntry {
    /// Physical address of its registers.
    pub base: u64,
    /// Its first global interrupt.
    pub first: u32,
}

/// How an interrupt line signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wiring {
    /// Active low rather than high.
    pub low: bool,
    /// By level rather than by edge.
    pub level: bool,
}

impl Wiring {
    /// Lines of the ISA bus: active high, by edge.
    pub const ISA: Self = Self {
        low: false,
        level: false,
    };
    /// Lines of the PCI bus: active low, by level.
    pub const PCI: Self = Self {
        low: true,
        level: true,
    };

    /// From the flags of an entry (table 5.26); "as the bus does" is `bus`.
    const fn from_flags(flags: u16, bus: Self) -> Self {
        Self {
            low: match flags & 3 {
                1 => false,
                3 => true,
                _ => bus.low,
            },
            level: match flags >> 2 & 3 {
                1 => false,
                3 => true,
                _ => bus.level,
            },
        }
    }
}

/// An ISA line that is wired otherwise than one would think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override {
    /// The global interrupt it arrives at.
    pub global: u32,
    /// How.
    pub wiring: Wiring,
}

/// What the table says.
#[derive(Debug)]
pub struct Madt {
    /// Physical address of the local APICs' registers.
    pub local_base: u64,
    /// APIC ids of the CPUs that may be used, in the table's order.
    pub cpus: Vec<u32, CPUS_MAX>,
    /// CPUs beyond those the kernel can run.
    pub cpus_left_out: u32,
    /// I/O APICs.
    pub io_apics: Vec<IoApicEntry, IO_APICS_MAX>,
    /// By ISA line.
    pub overrides: [Option<Override>; ISA_LINES],
    /// Local interrupt inputs (bit 0, bit 1) of the CPUs that an NMI arrives at.
    pub nmi_inputs: u8,
}

impl Madt {
    /// Where the registers of the interrupt controllers are, which are the kernel's alone.
    pub fn controllers(&self) -> impl Iterator<Item = Range> {
        const PAGE: u64 = 4096;
        let io = self.io_apics.iter().map(|io| io.base);
        io.chain([self.local_base])
            .map(|base| Range::sized(base, PAGE).outer_pages())
    }

    /// How a global interrupt is wired: as an ISA line that was moved to it, as the ISA line of that number, or as PCI.
    #[must_use]
    pub fn wiring(&self, global: u32) -> Wiring {
        let moved = self.overrides.iter().flatten().find(|o| o.global == global);
        match moved {
            Some(moved) => moved.wiring,
            None if (global as usize) < ISA_LINES => Wiring::ISA,
            None => Wiring::PCI,
        }
    }
}

/// Reads the table, as far as it can be believed: an entry that is too short for its type ends the walk.
pub fn parse(memory: &impl PhysRead, table: Table) -> Madt {
    let mut madt = Madt {
        local_base: field::<4>(memory, table, HEADER_SIZE)
            .map_or(0, |bytes| u32::from_le_bytes(bytes).into()),
        cpus: Vec::new(),
        cpus_left_out: 0,
        io_apics: Vec::new(),
        overrides: [None; ISA_LINES],
        nmi_inputs: 0,
    };
    let mut offset = HEADER_SIZE + 8;
    while let Some([kind, bytes]) = field(memory, table, offset) {
        let size: usize = match kind {
            0 => 8,
            1 => 12,
            2 => 10,
            4 => 6,
            5 => 12,
            9 => 16,
            _ => 2,
        };
        let mut entry = [0; 16];
        let Some(entry) = entry.get_mut(..size) else {
            break;
        };
        let end = offset + u32::from(bytes);
        if usize::from(bytes) < size
            || end > table.bytes
            || !memory.read(table.at + u64::from(offset), entry)
        {
            break;
        }
        madt.take(kind, entry);
        offset = end;
    }
    madt
}

impl Madt {
    fn take(&mut self, kind: u8, entry: &[u8]) {
        const ENABLED: u32 = 1;
        match kind {
            0 if half(entry, 4) & ENABLED != 0 => self.cpu(entry[3].into()),
            9 if half(entry, 8) & ENABLED != 0 => self.cpu(half(entry, 4)),
            1 => {
                let io_apic = IoApicEntry {
                    base: half(entry, 4).into(),
                    first: half(entry, 8),
                };
                // More than the kernel uses: their lines are not offered.
                let _ = self.io_apics.push(io_apic);
            }
            2 => {
                let flags = u16::from_le_bytes([entry[8], entry[9]]);
                if let Some(line) = self.overrides.get_mut(usize::from(entry[3])) {
                    *line = Some(Override {
                        global: half(entry, 4),
                        wiring: Wiring::from_flags(flags, Wiring::ISA),
                    });
                }
            }
            4 => self.nmi_inputs |= 1 << (entry[5] & 1),
            5 => self.local_base = word(entry, 4),
            _ => {}
        }
    }

    fn cpu(&mut self, id: u32) {
        if !self.cpus.contains(&id) && self.cpus.push(id).is_err() {
            self.cpus_left_out += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tables;
    use super::super::testing::{firmware, table};
    use super::*;
    use proptest::prelude::*;

    fn parsed(entries: &[u8]) -> Madt {
        let mut body = vec![0, 0, 0xe0, 0xfe, 1, 0, 0, 0];
        body.extend(entries);
        let memory = firmware(2, vec![table(b"APIC", &body)]);
        parse(
            &memory,
            Tables::find(&memory, None).unwrap().get(b"APIC").unwrap(),
        )
    }

    fn cpu(id: u8, enabled: u8) -> [u8; 8] {
        [0, 8, id, id, enabled, 0, 0, 0]
    }

    #[test]
    fn a_usual_table_is_understood() {
        let madt = parsed(
            &[
                &cpu(0, 1)[..],
                &cpu(2, 1),
                &cpu(4, 0),
                &[9, 16, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0],
                &[0x42, 4, 1, 2],
                &[1, 12, 0, 0, 0, 0, 0xc0, 0xfe, 0, 0, 0, 0],
                &[2, 10, 0, 0, 2, 0, 0, 0, 0, 0],
                &[2, 10, 0, 9, 9, 0, 0, 0, 0xd, 0],
                &[2, 10, 0, 11, 20, 0, 0, 0, 0xf, 0],
                &[4, 6, 0xff, 0, 0, 1],
            ]
            .concat(),
        );
        assert_eq!(madt.local_base, 0xfee0_0000);
        assert_eq!(madt.cpus, [0, 2, 0x100]);
        assert_eq!(
            madt.io_apics,
            [IoApicEntry {
                base: 0xfec0_0000,
                first: 0
            }]
        );
        assert_eq!(
            madt.overrides[0],
            Some(Override {
                global: 2,
                wiring: Wiring::ISA
            })
        );
        assert_eq!(madt.nmi_inputs, 2);
        assert_eq!(
            madt.wiring(9),
            Wiring {
                low: false,
                level: true
            }
        );
        assert_eq!(madt.wiring(20), Wiring::PCI);
        assert_eq!(madt.wiring(4), Wiring::ISA);
        assert_eq!(madt.wiring(16), Wiring::PCI);
    }

    #[test]
    fn too_many_cpus_are_counted_and_twins_are_one() {
        let entries: Vec<u8, 2048> = (0..100).chain(0..100).flat_map(|id| cpu(id, 1)).collect();
        let madt = parsed(&entries);
        assert_eq!(madt.cpus.len(), CPUS_MAX);
        assert_eq!(madt.cpus_left_out as usize, 2 * (100 - CPUS_MAX));
    }

    #[test]
    fn an_entry_that_runs_out_ends_the_walk() {
        assert_eq!(parsed(&[0, 8, 0, 0, 1, 0, 0]).cpus.len(), 0);
        assert_eq!(parsed(&[0, 0, 0, 0, 1, 0, 0, 0]).cpus.len(), 0);
        assert_eq!(parsed(&[0, 7, 0, 0, 1, 0, 0, 0, 0, 0]).cpus.len(), 0);
        assert_eq!(
            parsed(&[&cpu(1, 1)[..], &[0, 200, 0, 0, 1, 0, 0, 0]].concat()).cpus,
            [1]
        );
        assert_eq!(
            parsed(&[5, 12, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]).local_base,
            0x1_0000_0001
        );
        assert_eq!(
            parsed(&[2, 10, 0, 16, 2, 0, 0, 0, 0, 0]).overrides,
            [None; ISA_LINES]
        );
    }

    proptest! {
        #[test]
        fn no_bytes_crash_it(entries in prop::collection::vec(any::<u8>(), 0..400)) {
            let madt = parsed(&entries);
            prop_assert!(madt.cpus.len() <= entries.len() / 8);
            prop_assert!(madt.io_apics.len() <= entries.len() / 12);
        }
    }
}
