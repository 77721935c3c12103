//! The PVH boot protocol: what the loader leaves at the address in EBX.
//!
//! Layouts are those of Xen's public header `arch-x86/hvm/start_info.h`. This module alone knows the protocol; it makes
//! [`BootInfo`], which is what another protocol would make as well.

use super::memory::{Range, RangeSet};
use super::{PhysRead, half, word};
use heapless::{String, Vec};
use ipc::abi::layout::{COMMAND_LINE_MAX, PHYSICAL_END};

/// First word of the start information.
pub const MAGIC: u32 = 0x336e_c578;
/// The version that brought the memory map.
const VERSION_MEMORY_MAP: u32 = 1;
/// Bytes of a module's record.
const MODULE_SIZE: u64 = 32;
/// Bytes of a memory map entry.
const ENTRY_SIZE: u64 = 24;
/// Most memory map entries that are read.
const ENTRIES_MAX: u32 = 256;
/// An entry's type that means RAM.
const TYPE_RAM: u32 = 1;

/// What a boot loader tells, whatever its protocol.
#[derive(Debug)]
pub struct BootInfo {
    /// RAM in whole pages, without what the firmware keeps.
    pub ram: RangeSet,
    /// The boot module, if one was given.
    pub module: Option<Range>,
    /// Where ACPI's root pointer is, if the loader knows.
    pub rsdp: Option<u64>,
    /// The command line, cut at [`COMMAND_LINE_MAX`]; bytes that are not printable ASCII are `?`.
    pub command_line: String<COMMAND_LINE_MAX>,
}

/// Why the start information is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It cannot be read, or points to something that cannot.
    Unreadable {
        /// Physical address.
        at: u64,
    },
    /// It does not begin as it should.
    BadMagic,
    /// The loader gives no memory map.
    NoMemoryMap,
    /// More memory map entries than any machine has.
    TooManyEntries,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Unreadable { at } => write!(f, "boot information at {at:#x} cannot be read"),
            Self::BadMagic => write!(f, "not started by the PVH boot protocol"),
            Self::NoMemoryMap => write!(f, "the boot loader gives no memory map"),
            Self::TooManyEntries => write!(f, "the boot loader's memory map is damaged"),
        }
    }
}

/// Reads the start information at physical address `at`.
///
/// # Errors
/// Why it is of no use.
pub fn parse(memory: &impl PhysRead, at: u64) -> Result<BootInfo, Error> {
    let info: [u8; 56] = memory.bytes(at).ok_or(Error::Unreadable { at })?;
    if half(&info, 0) != MAGIC {
        return Err(Error::BadMagic);
    }
    let entries = half(&info, 48);
    if half(&info, 4) < VERSION_MEMORY_MAP || entries == 0 {
        return Err(Error::NoMemoryMap);
    }
    if entries > ENTRIES_MAX {
        return Err(Error::TooManyEntries);
    }
    let modules = half(&info, 12);
    let module = match modules {
        0 => None,
        _ => {
            let at = word(&info, 16);
            let record: [u8; MODULE_SIZE as usize] =
                memory.bytes(at).ok_or(Error::Unreadable { at })?;
            Some(Range::sized(word(&record, 0), word(&record, 8)))
        }
    };
    Ok(BootInfo {
        ram: memory_map(memory, word(&info, 40), entries)?,
        module: module.filter(|module| module.bytes() > 0),
        rsdp: Some(word(&info, 32)).filter(|&rsdp| rsdp != 0),
        command_line: command_line(memory, word(&info, 24)),
    })
}

/// RAM, less everything else the map names: where entries overlap, memory that is not RAM wins.
fn memory_map(memory: &impl PhysRead, map: u64, entries: u32) -> Result<RangeSet, Error> {
    let mut ram = RangeSet::new();
    let mut kept: Vec<Range, { ENTRIES_MAX as usize }> = Vec::new();
    for index in 0..u64::from(entries) {
        let at = map.saturating_add(index * ENTRY_SIZE);
        let entry: [u8; ENTRY_SIZE as usize] = memory.bytes(at).ok_or(Error::Unreadable { at })?;
        let range = Range::sized(word(&entry, 0), word(&entry, 8));
        if half(&entry, 16) == TYPE_RAM {
            ram.insert(range.inner_pages());
        } else {
            // There is room for every entry.
            let _ = kept.push(range.outer_pages());
        }
    }
    for range in kept {
        ram.remove(range);
    }
    ram.remove(Range {
        start: PHYSICAL_END,
        end: u64::MAX,
    });
    Ok(ram)
}

/// The zero-terminated command line; empty if there is none, cut short where it cannot be read.
fn command_line(memory: &impl PhysRead, at: u64) -> String<COMMAND_LINE_MAX> {
    let mut line = String::new();
    if at == 0 {
        return line;
    }
    for offset in 0..COMMAND_LINE_MAX as u64 {
        match memory.bytes::<1>(at.saturating_add(offset)) {
            None | Some([0]) => break,
            Some([byte @ b' '..=b'~']) => _ = line.push(char::from(byte)),
            Some(_) => _ = line.push('?'),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::testing::Pieces;
    use super::*;
    use proptest::prelude::*;

    fn info(modules: u32, entries: &[(u64, u64, u32)]) -> Pieces {
        let mut start = Vec::<u8, 56>::new();
        for number in [MAGIC, 1, 0, modules] {
            start.extend(number.to_le_bytes());
        }
        for number in [0x2000u64, 0x3000, 0xf_0000, 0x4000] {
            start.extend(number.to_le_bytes());
        }
        start.extend((entries.len() as u32).to_le_bytes());
        start.extend([0; 4]);
        let module: std::vec::Vec<u8> = [0x10_0000_0000u64, 0x1234, 0, 0]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        let map = entries
            .iter()
            .flat_map(|&(base, size, kind)| {
                let mut entry = base.to_le_bytes().to_vec();
                entry.extend(size.to_le_bytes());
                entry.extend(u64::from(kind).to_le_bytes());
                entry
            })
            .collect();
        Pieces(vec![
            (0x1000, start.to_vec()),
            (0x2000, module),
            (0x3000, b"panic=test \x07\xff x\0after".to_vec()),
            (0x4000, map),
        ])
    }

    #[test]
    fn everything_told_is_found() {
        let memory = info(
            1,
            &[
                (0, 0x9_fc00, 1),
                (0x10_0000, 0x100_0000, 1),
                (0x80_0000, 10, 2),
            ],
        );
        let found = parse(&memory, 0x1000).unwrap();
        assert_eq!(
            found.ram.ranges(),
            [
                Range {
                    start: 0,
                    end: 0x9_f000
                },
                Range {
                    start: 0x10_0000,
                    end: 0x80_0000
                },
                Range {
                    start: 0x80_1000,
                    end: 0x110_0000
                },
            ]
        );
        assert_eq!(found.module, Some(Range::sized(0x10_0000_0000, 0x1234)));
        assert_eq!(found.rsdp, Some(0xf_0000));
        assert_eq!(found.command_line, "panic=test ?? x");
    }

    #[test]
    fn what_is_missing_is_said() {
        let memory = info(0, &[(0, 0x1000, 1)]);
        assert_eq!(parse(&memory, 0x1000).unwrap().module, None);
        assert_eq!(
            parse(&memory, 0x5000).err(),
            Some(Error::Unreadable { at: 0x5000 })
        );
        assert_eq!(
            parse(&memory, 0x3000).err(),
            Some(Error::Unreadable { at: 0x3000 })
        );
        assert_eq!(parse(&info(0, &[]), 0x1000).err(), Some(Error::NoMemoryMap));
        let many = vec![(0, 0x1000, 1); 257];
        assert_eq!(
            parse(&info(0, &many), 0x1000).err(),
            Some(Error::TooManyEntries)
        );
        let mut other = info(0, &[(0, 0x1000, 1)]);
        other.0[0].1[0] ^= 1;
        assert_eq!(parse(&other, 0x1000).err(), Some(Error::BadMagic));
        let mut cut = info(0, &[(0, 0x1000, 1)]);
        cut.0[3].1.pop();
        assert_eq!(
            parse(&cut, 0x1000).err(),
            Some(Error::Unreadable { at: 0x4000 })
        );
    }

    /// Bytes of the start information that hold the count of memory map entries.
    const COUNT: core::ops::Range<usize> = 48..52;

    fn ram(entries: &[(u64, u64, u32)]) -> std::vec::Vec<Range> {
        let found = parse(&info(0, entries), 0x1000).unwrap();
        found.ram.ranges().to_vec()
    }

    /// A map of entries that lie apart, RAM and other.
    fn apart() -> impl Strategy<Value = std::vec::Vec<(u64, u64, u32)>> {
        prop::collection::vec((1..9u64, 1..9u64, 1..3u32), 1..6).prop_map(|rows| {
            let mut end = 0;
            let entry = |(gap, pages, kind)| {
                let start = end + gap * 0x1000;
                end = start + pages * 0x1000;
                (start, pages * 0x1000, kind)
            };
            rows.into_iter().map(entry).collect()
        })
    }

    proptest! {
        /// Whatever byte it is but those of the count, for which the next test has the law.
        #[test]
        fn damage_never_makes_memory_of_what_is_kept(
            at in (0..56usize).prop_filter("the count", |at| !COUNT.contains(at)), to in any::<u8>()
        ) {
            let mut memory = info(1, &[(0, u64::MAX, 1), (0x10_0000, 0x1000, 2)]);
            memory.0[0].1[at] = to;
            if let Ok(found) = parse(&memory, 0x1000) {
                prop_assert!(!found.ram.contains(Range::sized(0x10_0000, 1)));
                prop_assert!(found.ram.ranges().iter().all(|range| range.end <= PHYSICAL_END));
            }
        }

        /// The protocol has nothing to check the count by. A larger one runs into what cannot be read, here; a smaller one is a
        /// map of the first entries, all of it memory if no entry lies in another.
        #[test]
        fn a_damaged_count_is_refused_or_leaves_memory_out(map in apart(), at in COUNT, to in any::<u8>()) {
            let mut memory = info(0, &map);
            memory.0[0].1[at] = to;
            let count = half(&memory.0[0].1, COUNT.start);
            let found = parse(&memory, 0x1000).map(|found| found.ram.ranges().to_vec());
            let expected = match (count, map.get(..count as usize)) {
                (0, _) => Err(Error::NoMemoryMap),
                (_, Some(first)) => Ok(ram(first)),
                (..=ENTRIES_MAX, None) => Err(Error::Unreadable { at: 0x4000 + map.len() as u64 * ENTRY_SIZE }),
                (_, None) => Err(Error::TooManyEntries),
            };
            prop_assert_eq!(&found, &expected);
            let whole = parse(&info(0, &map), 0x1000).unwrap().ram;
            let mut both = whole.clone();
            found.unwrap_or_default().into_iter().for_each(|range| both.insert(range));
            prop_assert_eq!(both.bytes(), whole.bytes());
        }
    }
}
