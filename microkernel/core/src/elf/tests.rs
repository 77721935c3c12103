//! Good files are read as they were written; damaged ones are refused, and never believed.

use super::*;
use ipc::abi::layout::{PROGRAM_BASE, USER_END};
use proptest::prelude::*;

/// A program header to be written.
#[derive(Clone, Copy, Debug)]
struct Header {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    in_file: u64,
    in_memory: u64,
}

const fn load(flags: u32, offset: u64, address: u64, in_file: u64, in_memory: u64) -> Header {
    Header {
        kind: PT_LOAD,
        flags,
        offset,
        address,
        in_file,
        in_memory,
    }
}

const TEXT: Header = load(PF_R | PF_X, 0x1000, PROGRAM_BASE, 0x1234, 0x1234);
const RODATA: Header = load(PF_R, 0x3000, PROGRAM_BASE + 0x2000, 0x10, 0x10);
const DATA: Header = load(PF_R | PF_W, 0x4000, PROGRAM_BASE + 0x3000, 0x20, 0x2020);
const ENTRY: u64 = PROGRAM_BASE + 0x1230;

fn file(entry: u64, headers: &[Header]) -> Vec<u8> {
    let mut file = vec![0; 0x5000];
    file[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(16, &ET_EXEC.to_le_bytes());
    put(18, &EM_X86_64.to_le_bytes());
    put(20, &1u32.to_le_bytes());
    put(24, &entry.to_le_bytes());
    put(32, &64u64.to_le_bytes());
    put(52, &64u16.to_le_bytes());
    put(54, &56u16.to_le_bytes());
    put(56, &(headers.len() as u16).to_le_bytes());
    for (index, header) in headers.iter().enumerate() {
        let at = 64 + index * 56;
        put(at, &header.kind.to_le_bytes());
        put(at + 4, &header.flags.to_le_bytes());
        let longs = [
            header.offset,
            header.address,
            0,
            header.in_file,
            header.in_memory,
            PAGE_SIZE,
        ];
        longs
            .iter()
            .enumerate()
            .for_each(|(field, long)| put(at + 8 + field * 8, &long.to_le_bytes()));
    }
    file
}

fn parse(entry: u64, headers: &[Header]) -> Result<Program, Error> {
    Program::parse(&file(entry, headers))
}

#[test]
fn a_program_is_read_as_it_was_written() {
    let note = Header { kind: 4, ..RODATA };
    let nothing = load(PF_R | PF_W, 0x4000, 0x5000, 0, 0);
    let program = parse(ENTRY, &[note, TEXT, RODATA, nothing, DATA]).unwrap();
    assert_eq!(program.entry(), UserAddr(ENTRY));
    let pages = |address, count| Pages::new(UserAddr(address), count).unwrap();
    let expected = [
        Segment {
            pages: pages(PROGRAM_BASE, 2),
            access: Access::Execute,
            offset: 0x1000,
            bytes: 0x1234,
        },
        Segment {
            pages: pages(PROGRAM_BASE + 0x2000, 1),
            access: Access::Read,
            offset: 0x3000,
            bytes: 0x10,
        },
        Segment {
            pages: pages(PROGRAM_BASE + 0x3000, 3),
            access: Access::Write,
            offset: 0x4000,
            bytes: 0x20,
        },
    ];
    assert!(program.segments().eq(expected), "{program:?}");
}

#[test]
fn each_rule_has_its_error() {
    use Error::{BadAccess, BadEntry, BadLayout, BadSegment, NotStatic, TooMany, Truncated};
    let with = |change: fn(&mut Header)| {
        let mut data = DATA;
        change(&mut data);
        parse(ENTRY, &[TEXT, data]).unwrap_err()
    };
    let cases = [
        (with(|data| data.flags = PF_R | PF_W | PF_X), BadAccess),
        (with(|data| data.flags = PF_W), BadAccess),
        (with(|data| data.flags = 0), BadAccess),
        (with(|data| data.offset += 8), BadSegment),
        (with(|data| data.address += 8), BadSegment),
        (with(|data| data.in_memory = 0x1f), BadSegment),
        (with(|data| data.in_memory = u64::MAX), BadSegment),
        (with(|data| data.address = 0), BadSegment),
        (with(|data| data.address = USER_END - PAGE_SIZE), BadSegment),
        (
            with(|data| data.address = 0xffff_8000_0000_0000),
            BadSegment,
        ),
        (with(|data| data.flags = PF_R), BadSegment),
        (with(|data| data.address = PROGRAM_BASE + 0x1000), BadLayout),
        (with(|data| data.offset = 0x5000), Truncated),
        (with(|data| data.offset = u64::MAX << 12), Truncated),
        (
            with(|data| (data.in_file, data.in_memory) = (u64::MAX, u64::MAX)),
            Truncated,
        ),
        (with(|data| data.kind = PT_INTERP), NotStatic),
        (with(|data| data.kind = PT_DYNAMIC), NotStatic),
        (parse(ENTRY, &[]).unwrap_err(), BadLayout),
        (parse(PROGRAM_BASE + 0x1234, &[TEXT]).unwrap_err(), BadEntry),
        (parse(PROGRAM_BASE - 1, &[TEXT]).unwrap_err(), BadEntry),
        (parse(DATA.address, &[TEXT, DATA]).unwrap_err(), BadEntry),
        (parse(ENTRY, &[RODATA; 33]).unwrap_err(), TooMany),
    ];
    for (index, (got, expected)) in cases.into_iter().enumerate() {
        assert_eq!(got, expected, "case {index}");
    }
    let many: Vec<Header> = (0..9)
        .map(|index| load(PF_R, 0, PROGRAM_BASE + index * PAGE_SIZE, 1, 1))
        .collect();
    assert_eq!(parse(ENTRY, &many), Err(TooMany));
}

#[test]
fn the_file_header_is_checked() {
    let good = file(ENTRY, &[TEXT]);
    let with = |at: usize, byte: u8| {
        let mut file = good.clone();
        file[at] = byte;
        Program::parse(&file).map(|_| ())
    };
    assert_eq!(with(9, 0), Ok(()));
    for (at, byte) in [(0, 0), (4, 1), (5, 2), (6, 0), (18, 3), (20, 2), (54, 64)] {
        assert_eq!(with(at, byte), Err(Error::NotElf), "byte {at}");
    }
    assert_eq!(with(16, 3), Err(Error::NotStatic));
    assert_eq!(with(39, 0x80), Err(Error::Truncated));
}

/// What was accepted can be mapped and started without a look at the file's numbers.
fn check(file: &[u8]) -> Result<(), TestCaseError> {
    let Ok(program) = Program::parse(file) else {
        return Ok(());
    };
    let segments: Vec<Segment> = program.segments().collect();
    let mut entered = false;
    for (index, segment) in segments.iter().enumerate() {
        prop_assert!(segment.offset.is_multiple_of(PAGE_SIZE as usize));
        prop_assert!(
            segment
                .offset
                .checked_add(segment.bytes)
                .is_some_and(|end| end <= file.len())
        );
        prop_assert!(segment.bytes as u64 <= segment.pages.count() * PAGE_SIZE);
        prop_assert!(segment.pages.end() <= USER_END);
        prop_assert!(
            segments[..index]
                .iter()
                .all(|other| !other.pages.overlaps(segment.pages))
        );
        if segment.access != Access::Write {
            prop_assert_eq!(
                segment.bytes.div_ceil(PAGE_SIZE as usize) as u64,
                segment.pages.count()
            );
        }
        entered |= segment.access == Access::Execute && segment.pages.contains(program.entry());
    }
    prop_assert!(entered);
    Ok(())
}

/// Numbers near the edges as well as any.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0..0x6000u64),
        (0..8u64).prop_map(|page| page * PAGE_SIZE),
        (0..8u64).prop_map(|page| PROGRAM_BASE + page * PAGE_SIZE),
        (0..4u64).prop_map(|page| USER_END - page * PAGE_SIZE),
        (0..4u64).prop_map(|below| u64::MAX - below),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn what_is_accepted_can_be_mapped(headers in prop::collection::vec((0..8u32, number(), number(), number(), number()), 0..5), entry in number()) {
        let mut all = vec![TEXT];
        all.extend(headers.into_iter().map(|(flags, offset, address, in_file, in_memory)| load(flags, offset, address, in_file, in_memory)));
        check(&file(entry, &all))?;
        check(&file(ENTRY, &all))?;
    }

    #[test]
    fn a_damaged_file_is_refused_or_sound(damage in prop::collection::vec((0..64 + 3 * 56usize, any::<u8>()), 1..6), length in 0..=0x5000usize) {
        let mut file = file(ENTRY, &[TEXT, RODATA, DATA]);
        damage.into_iter().for_each(|(at, byte)| file[at] = byte);
        check(&file)?;
        check(&file[..length])?;
    }

    #[test]
    fn noise_is_refused(noise in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Program::parse(&noise).is_err());
    }
}
